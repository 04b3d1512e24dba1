#include "glue/worker.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "glue/descriptors.hpp"
#include "glue/ipc.hpp"
#include "glue/sweep.hpp"

namespace glidepod::glue {

namespace {

// Most entries that are looked at without a child: a fraction of a millisecond's work.
constexpr std::size_t k_most_looked_at = 256;
// A child gets a tenth of a processor beside a job that uses all of its own.
constexpr int k_nice = 10;
// One part in so many of a cleaner's time goes to folders of other users.
constexpr int k_foreign_part = 8;

// Others of the same user must not look into this process, nor may it outlive glue; both are forgotten at a
// change of user.
bool settle(pid_t parent) {
  return ::prctl(PR_SET_DUMPABLE, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
}

// The child has no descriptor of glue's but 0 to 2 and its report's, and takes the rights that it works with
// before anything else.
template <typename TakeRights, typename Work>
std::optional<Worker> start_worker(const TakeRights& take_rights, const Work& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::nullopt;
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child > 0) return Worker(child, std::move(read_end));
  close_all_but(write_end.get());
  if (!take_rights() || !settle(parent)) ::_exit(1);
  const auto report = work();
  ::_exit(::write(write_end.get(), &report, sizeof report) == sizeof report ? 0 : 1);
}

Cleaned remove_files(const User& user, const std::vector<std::string>& folders, SteadyTime foreign_until) {
  Sweep sweep(user, Sweep::Mode::remove);
  sweep.end_foreign_at(foreign_until);
  for (const auto& folder : folders) sweep.folder(folder);
  return {sweep.removed(), true};
}

Cleaned remove_as_user(const User& user, const std::vector<std::string>& folders, SteadyTime foreign_until) {
  const Cleaned files = remove_files(user, folders, foreign_until);
  return {files.removed + remove_ipc(user.uid), true};
}

// Root owns the shared folders, so it may unlink from them even where the user may not; and what this finds
// decides, not what the user's process says.
Cleaned remove_as_root(const User& user, const std::vector<std::string>& folders, SteadyTime foreign_until) {
  Sweep rest(user, Sweep::Mode::entries);
  rest.end_foreign_at(foreign_until);
  for (const auto& folder : folders) rest.folder(folder);
  return {rest.removed(), !rest.found() && !has_ipc(user.uid)};
}

Counted count(const User& user, const std::vector<std::string>& folders, SteadyTime until) {
  ::setpriority(PRIO_PROCESS, 0, k_nice);
  Sweep sweep(user, Sweep::Mode::count);
  sweep.end_at(until);
  for (const auto& folder : folders) sweep.folder(folder);
  return {(sweep.bytes() + 1023) / 1024, sweep.complete()};
}

}  // namespace

bool may_have_files(const User& user, const std::vector<std::string>& folders) {
  Sweep sweep(user, Sweep::Mode::look, k_most_looked_at);
  for (const auto& folder : folders)
    if (!sweep.found() && !sweep.cut_short()) sweep.folder(folder);
  return sweep.found() || sweep.cut_short();
}

bool may_have_left(const User& user, const std::vector<std::string>& folders) {
  return may_have_files(user, folders) || has_ipc(user.uid);
}

std::optional<Worker> start_cleaner(const User& user, const std::vector<std::string>& folders, bool as_root,
                                    Milliseconds limit) {
  const SteadyTime foreign_until = Loop::now() + limit / k_foreign_part;
  return start_worker([&] { return as_root || (become(user) == 0 && drop_capabilities() == 0); },
                      [&] {
                        return as_root ? remove_as_root(user, folders, foreign_until)
                                       : remove_as_user(user, folders, foreign_until);
                      });
}

std::optional<Worker> start_remover(const User& user, const std::vector<std::string>& folders) {
  return start_worker([&] { return see_as(user) == 0; },
                      [&] { return remove_files(user, folders, SteadyTime::max()); });
}

std::optional<Worker> start_counter(const User& user, const std::vector<std::string>& folders,
                                    Milliseconds limit) {
  const SteadyTime until = Loop::now() + limit;
  return start_worker([&] { return see_as(user) == 0; }, [&] { return count(user, folders, until); });
}

}  // namespace glidepod::glue
