#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "glue/processes.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Brings a signal to every descendant of this process, in passes over /proc. Nothing here waits: the caller
// decides when the next pass is.
class Pursuit {
 public:
  explicit Pursuit(int number) : number_(number) {}

  // Signals the processes that earlier passes have not signalled. True if there was none, and, for SIGSTOP,
  // if no process runs any more. A fork that has begun is completed before the signal acts, and its child is
  // not in /proc before that.
  bool pass();
  // The processes that the last pass found.
  const std::vector<ProcessStat>& found() const { return found_; }
  bool found_new() const { return found_new_; }
  int passes() const { return passes_; }
  // The time to the next pass. The signalled processes need the processor to act on the signal.
  Milliseconds pause() const { return Milliseconds(passes_ <= 3 ? 0 : passes_ <= 30 ? 1 : 10); }

 private:
  int number_;
  int passes_ = 0;
  bool found_new_ = false;
  std::set<std::pair<pid_t, std::uint64_t>> known_;  // by pid and start time
  std::vector<ProcessStat> found_;
};

// Ends every descendant of this process in short steps, however it tries to get away.
//
// All processes are first stopped and then killed. Stopped processes keep their places under a limit on
// processes, so even a fork bomb comes to rest; killing at once would make room for its next generation.
// Processes that do not come to rest are killed all the same. A process that dumps core does not stop, but it
// can be killed. If processes replace themselves faster than /proc can be read, the newest one becomes a
// child of this process. A child can be killed by its pid alone, since nobody else reaps it.
class Ending {
 public:
  // uncounted: one that is not to be counted as killed.
  Ending(SteadyTime now, Milliseconds limit, pid_t uncounted = -1)
      : deadline_(now + limit), uncounted_(uncounted) {}

  // To be called while there are children. Returns the time to the next step, which comes earlier if a child
  // ends; nothing when the time is over.
  std::optional<Milliseconds> step(SteadyTime now);
  // To be called for each process that was reaped meanwhile, with wait(2)'s status.
  void reaped(pid_t pid, int status);
  std::uint32_t killed() const { return killed_; }

 private:
  Milliseconds stop(SteadyTime now);
  void kill_found();
  Milliseconds hunt();

  SteadyTime deadline_;
  pid_t uncounted_;
  SteadyTime stopping_since_{}, found_new_at_{};
  SteadyTime killing_until_{};  // it kills until then, and stops processes from then on
  std::optional<Pursuit> stopping_;
  std::set<pid_t> hunted_;
  std::set<pid_t> counted_;
  std::uint32_t killed_ = 0;
};

// The same for a process that has nothing else to do: it blocks, for at most this limit. SIGCHLD must be
// blocked.
void end_descendants(Milliseconds limit, const Reaped& reaped);

}  // namespace glidepod::glue
