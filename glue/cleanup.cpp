#include "glue/cleanup.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "glue/descriptors.hpp"
#include "glue/ipc.hpp"
#include "glue/sweep.hpp"

namespace glidepod::glue {

namespace {

// What is looked at without a child: a fraction of a millisecond's work.
constexpr std::size_t k_most_looked_at = 256;

// Others of the same user must not look into this process, nor may it outlive glue; both are forgotten at a
// change of user.
bool settle(pid_t parent) {
  return ::prctl(PR_SET_DUMPABLE, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
}

Cleaned remove_as_user(const User& user, const std::vector<std::string>& folders) {
  Sweep sweep(user, Sweep::Mode::remove);
  for (const auto& folder : folders) sweep.folder(folder);
  return {sweep.removed() + remove_ipc(user.uid), true};
}

// Root owns the shared folders, so it may unlink from them even where the user may not; and what this finds
// decides, not what the user's process says.
Cleaned remove_as_root(const User& user, const std::vector<std::string>& folders) {
  Sweep rest(user, Sweep::Mode::entries);
  for (const auto& folder : folders) rest.folder(folder);
  return {rest.removed(), !rest.found() && !has_ipc(user.uid)};
}

}  // namespace

Cleaning::Cleaning(User user, Limits limits, std::vector<std::string> folders)
    : user_(std::move(user)), limits_(limits), folders_(std::move(folders)) {
  if (user_.uid != 0 && look() != Found::nothing) begin(Stage::as_user);
}

Milliseconds Cleaning::limit() const {
  switch (stage_) {
    case Stage::as_user:
      return limits_.as_user;
    case Stage::as_root:
      return limits_.as_root;
    case Stage::killed_user:
    case Stage::killed_root:
      return limits_.to_die;
    case Stage::done:
      break;
  }
  return Milliseconds(0);
}

Cleaning::Found Cleaning::look() const {
  Sweep sweep(user_, Sweep::Mode::look, k_most_looked_at);
  for (const auto& folder : folders_)
    if (!sweep.found() && !sweep.cut_short()) sweep.folder(folder);
  if (sweep.found()) return Found::something;
  if (sweep.cut_short()) return Found::too_much;
  return has_ipc(user_.uid) ? Found::something : Found::nothing;
}

void Cleaning::begin(Stage stage) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return finish(false);
  report_.reset(ends[0]);
  const Fd write_end(ends[1]);
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) return finish(false);
  if (child_ > 0) {
    stage_ = stage;
    return;
  }
  close_all_but(write_end.get());
  if (stage == Stage::as_user && (become(user_) != 0 || drop_capabilities() != 0)) ::_exit(1);
  if (!settle(parent)) ::_exit(1);
  const Cleaned cleaned =
      stage == Stage::as_user ? remove_as_user(user_, folders_) : remove_as_root(user_, folders_);
  ::_exit(::write(write_end.get(), &cleaned, sizeof cleaned) == sizeof cleaned ? 0 : 1);
}

bool Cleaning::ended(pid_t pid) {
  if (pid != child_ || done()) return false;
  Cleaned cleaned{0, false};
  if (::read(report_.get(), &cleaned, sizeof cleaned) != sizeof cleaned) cleaned = {0, false};
  result_.removed += cleaned.removed;
  if (stage_ == Stage::as_root || stage_ == Stage::killed_root)
    finish(cleaned.complete);
  else if (look() == Found::nothing)
    finish(true);
  else
    begin(Stage::as_root);
  return true;
}

void Cleaning::overdue() {
  switch (stage_) {
    case Stage::as_user:
    case Stage::as_root:
      // Not yet reaped, so the pid is still its own.
      ::kill(child_, SIGKILL);
      stage_ = stage_ == Stage::as_user ? Stage::killed_user : Stage::killed_root;
      return;
    case Stage::killed_user:
    case Stage::killed_root:
      return finish(false);
    case Stage::done:
      return;
  }
}

void Cleaning::finish(bool complete) {
  stage_ = Stage::done;
  child_ = -1;
  report_.reset();
  result_.complete = complete;
}

}  // namespace glidepod::glue
