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

// Brings a signal to every descendant of this process, in passes over /proc. Nothing here waits: whoever
// drives it decides when the next pass is.
class Pursuit {
 public:
  explicit Pursuit(int number) : number_(number) {}

  // Signals what the passes before have not. True if there was nothing new and, for SIGSTOP, nothing runs any
  // more: a fork that has begun is completed before the signal acts, and its child is not in /proc until
  // then.
  bool pass();
  // Of the last pass.
  const std::vector<ProcessStat>& found() const { return found_; }
  bool found_new() const { return found_new_; }
  int passes() const { return passes_; }
  // How long to the next pass: the signalled need the processor to act on it.
  Milliseconds pause() const { return Milliseconds(passes_ <= 3 ? 0 : passes_ <= 30 ? 1 : 10); }

 private:
  int number_;
  int passes_ = 0;
  bool found_new_ = false;
  std::set<std::pair<pid_t, std::uint64_t>> known_;  // by pid and start time
  std::vector<ProcessStat> found_;
};

// Ends every descendant of this process, however it tries to get away, in short steps.
//
// Everything is stopped first, then killed: stopped processes keep their place under a limit on processes, so
// even a fork bomb comes to rest; killing at once would make room for its next generation. What does not come
// to rest is killed all the same. A process that dumps core does not stop, but it can be killed. Of processes
// that replace themselves faster than /proc can be read, the newest becomes a child of this one, and a child
// can be killed by its pid alone, since nobody else reaps it.
class Ending {
 public:
  Ending(SteadyTime now, Milliseconds limit) : deadline_(now + limit) {}

  // To be called while there are children. How long to the next step, unless a child ends before; nothing
  // when the time is over.
  std::optional<Milliseconds> step(SteadyTime now);
  // Each process that was reaped meanwhile, with wait(2)'s status.
  void reaped(pid_t pid, int status);
  std::uint32_t killed() const { return killed_; }

 private:
  Milliseconds stop(SteadyTime now);
  void kill_found();
  Milliseconds hunt();

  SteadyTime deadline_;
  SteadyTime stopping_since_{}, found_new_at_{};
  SteadyTime killing_until_{};  // from then on: stopping
  std::optional<Pursuit> stopping_;
  std::set<pid_t> hunted_;
  std::set<pid_t> counted_;
  std::uint32_t killed_ = 0;
};

// The same for a process that has nothing else to do: blocks, within the limit. SIGCHLD must be blocked.
void end_descendants(Milliseconds limit, const Reaped& reaped);

}  // namespace glidepod::glue
