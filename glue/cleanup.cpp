#include "glue/cleanup.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "glue/ipc.hpp"
#include "glue/sweep.hpp"
#include "lib/base/child.hpp"
#include "lib/base/fd.hpp"

namespace glidepod::glue {

namespace {

std::uint32_t remove_as_user(const User& user, const std::vector<std::string>& folders) {
  Sweep sweep(user, Sweep::Mode::remove);
  for (const auto& folder : folders) sweep.folder(folder);
  return sweep.removed() + remove_ipc(user.uid);
}

std::uint32_t remove_in_child(const User& user, const std::vector<std::string>& folders) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return 0;
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  auto child = Child::fork([&] {
    if (become(user) != 0 || drop_capabilities() != 0) return 1;
    const std::uint32_t removed = remove_as_user(user, folders);
    return ::write(write_end.get(), &removed, sizeof removed) == sizeof removed ? 0 : 1;
  });
  write_end.reset();
  if (!child || !child->wait()) return 0;
  std::uint32_t removed = 0;
  return ::read(read_end.get(), &removed, sizeof removed) == sizeof removed ? removed : 0;
}

}  // namespace

Cleaned clean_after(const User& user, const std::vector<std::string>& folders) {
  Cleaned cleaned;
  if (user.uid == 0) return cleaned;
  const auto anything = [&] {
    Sweep look(user, Sweep::Mode::look);
    for (const auto& folder : folders) look.folder(folder);
    return look.found() || has_ipc(user.uid);
  };
  if (!anything()) return cleaned;
  cleaned.removed = remove_in_child(user, folders);
  // Root owns the shared folders, so it may unlink from them even where the user may not; and what this finds
  // decides, not what the child says.
  Sweep rest(user, Sweep::Mode::entries);
  for (const auto& folder : folders) rest.folder(folder);
  cleaned.removed += rest.removed();
  cleaned.complete = !rest.found() && !has_ipc(user.uid);
  return cleaned;
}

}  // namespace glidepod::glue
