#pragma once

#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/worker.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Where a job's files take disk that HTCondor, which counts the sandbox, does not see. /dev/shm is memory,
// and is counted as that.
inline const std::vector<std::string> k_disk_folders = {"/tmp", "/var/tmp"};

// Counts what a user has on disk below the folders: when asked to, unless the last count is recent or was
// long, and one count at a time. Whoever drives it reaps the child, and kills it when it takes longer than
// limits().hung.
class Counting {
 public:
  struct Limits {
    Milliseconds age = std::chrono::seconds(50);   // from the end of a count to the next one
    Milliseconds walk = std::chrono::seconds(20);  // then it tells what it has found so far
    Milliseconds hung = std::chrono::seconds(30);
  };
  Counting(User user, Limits limits, std::vector<std::string> folders = k_disk_folders);

  const Limits& limits() const { return limits_; }
  // What the last count has found.
  const Counted& result() const { return result_; }
  // True: a child of this process counts from now on.
  bool begin(SteadyTime now);
  // A child of this process was reaped. True if it was this one.
  bool ended(pid_t pid, SteadyTime now);
  void kill() const { worker_.kill(); }

 private:
  User user_;
  Limits limits_;
  std::vector<std::string> folders_;
  Worker worker_;
  SteadyTime begun_{}, next_{};
  Counted result_;
};

}  // namespace glidepod::glue
