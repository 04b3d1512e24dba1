#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/worker.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// The folders outside of its sandbox in which a job may leave files; and those that all containers of the pod
// share.
inline const std::vector<std::string> k_shared_folders = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};
inline const std::vector<std::string> k_folders_of_pod = {"/dev/shm", "/dev/mqueue"};

// Removes what a user owns below the folders, and the user's System V IPC objects. The user must have no
// process left. One child does this with the user's own rights, since root has no CAP_DAC_OVERRIDE here, and
// a second child looks again as root. This process itself only looks at a few entries, and makes no child if
// there is nothing.
//
// The caller reaps the children and keeps the time; another process of the same user may stop a child.
class Cleaning {
 public:
  // How long a child may take: as the user, as root, and to end after it was killed.
  struct Limits {
    Milliseconds as_user = std::chrono::seconds(20);
    Milliseconds as_root = std::chrono::seconds(5);
    Milliseconds to_die = std::chrono::seconds(2);
  };
  Cleaning(User user, Limits limits, std::vector<std::string> folders = k_shared_folders);

  bool done() const { return stage_ == Stage::done; }
  // If it is not done: the time after which overdue() must be called.
  Milliseconds limit() const;
  // Sets the limits from the next stage on.
  void limit_to(Limits limits) { limits_ = limits; }
  // To be called when a child of this process was reaped. True if it was one of these; limit() and done()
  // then change.
  bool ended(pid_t pid);
  // To be called when the time is over. Kills the child, or leaves it alone if it was killed already.
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
