#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/worker.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Where a job may leave files outside of its sandbox; and which of these all containers of the pod share.
inline const std::vector<std::string> k_shared_folders = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};
inline const std::vector<std::string> k_folders_of_pod = {"/dev/shm", "/dev/mqueue"};

// Removes what a user, who must have no process left, owns below the folders, and its System V IPC objects.
// A child does it with the user's own rights (root has no CAP_DAC_OVERRIDE here), a second one looks again as
// root; this process only ever looks at a few entries, and forks nothing where there is nothing.
//
// Whoever drives it reaps the children, which others of the same user may stop, and keeps the time.
class Cleaning {
 public:
  // How long a child may take: as the user, as root, and to die once it was killed.
  struct Limits {
    Milliseconds as_user = std::chrono::seconds(20);
    Milliseconds as_root = std::chrono::seconds(5);
    Milliseconds to_die = std::chrono::seconds(2);
  };
  Cleaning(User user, Limits limits, std::vector<std::string> folders = k_shared_folders);

  bool done() const { return stage_ == Stage::done; }
  // When not done: the time until overdue() is due.
  Milliseconds limit() const;
  // From the next stage on.
  void limit_to(Limits limits) { limits_ = limits; }
  // A child of this process was reaped. True if it was one of these: limit() and done() are new.
  bool ended(pid_t pid);
  // The time is over: its child is killed, or, if it does not even die, left alone.
  void overdue();
  const Cleaned& result() const { return result_; }

 private:
  enum class Stage : std::uint8_t { as_user, as_root, killed_user, killed_root, done };
  void begin(Stage stage);
  void finish(bool complete);

  User user_;
  Limits limits_;
  std::vector<std::string> folders_;
  Stage stage_ = Stage::done;
  Worker worker_;
  Cleaned result_;
};

}  // namespace glidepod::glue
