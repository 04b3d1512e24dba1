#include "glue/cleaner.hpp"

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

Found look_for(const User& user, const std::vector<std::string>& folders) {
  Sweep sweep(user, Sweep::Mode::look, k_most_looked_at);
  for (const auto& folder : folders)
    if (!sweep.found() && !sweep.cut_short()) sweep.folder(folder);
  if (sweep.found()) return Found::something;
  if (sweep.cut_short()) return Found::too_much;
  return has_ipc(user.uid) ? Found::something : Found::nothing;
}

std::optional<Cleaner> start_cleaner(const User& user, const std::vector<std::string>& folders,
                                     bool as_root) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::nullopt;
  Cleaner cleaner;
  cleaner.report.reset(ends[0]);
  const Fd write_end(ends[1]);
  const pid_t parent = ::getpid();
  cleaner.pid = ::fork();
  if (cleaner.pid < 0) return std::nullopt;
  if (cleaner.pid > 0) return cleaner;
  close_all_but(write_end.get());
  if (!as_root && (become(user) != 0 || drop_capabilities() != 0)) ::_exit(1);
  if (!settle(parent)) ::_exit(1);
  const Cleaned cleaned = as_root ? remove_as_root(user, folders) : remove_as_user(user, folders);
  ::_exit(::write(write_end.get(), &cleaned, sizeof cleaned) == sizeof cleaned ? 0 : 1);
}

}  // namespace glidepod::glue
