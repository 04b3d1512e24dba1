#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/timer.hpp"
#include "glue/worker.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// The folders in which a job's files take disk that HTCondor does not see: it counts only the sandbox.
// /dev/shm is memory, and is counted as memory.
inline const std::vector<std::string> k_disk_folders = {"/tmp", "/var/tmp"};

// Counts what a user has on disk below the folders, in a child. There is one count at a time, and none soon
// after a recent or long one. A count that hangs is killed. The caller reaps the child.
class Counting {
 public:
  struct Limits {
    Milliseconds age = std::chrono::seconds(50);   // least time from the end of a count to the next one
    Milliseconds walk = std::chrono::seconds(20);  // after this time the child tells what it has found so far
    Milliseconds hung = std::chrono::seconds(30);
  };
  Counting(Loop& loop, User user, Limits limits, std::vector<std::string> folders = k_disk_folders);

  // The result of the last count.
  const Counted& result() const { return result_; }
  // Begins a count if it is time for one.
  void begin();
  // To be called when a child of this process was reaped. True if it was this one.
  bool ended(pid_t pid);
  // From now on the caller ends the child. Returns its pid, or -1 if there is none.
  pid_t hand_over();

 private:
  User user_;
  Limits limits_;
  std::vector<std::string> folders_;
  Timer timer_;
  Worker worker_;
  SteadyTime begun_{}, next_{};
  Counted result_;
};

}  // namespace glidepod::glue
