#include "glue/folder_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>

namespace glidepod::glue {

Result<Fd> watch_folder(const std::string& path) {
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return Error::system("inotify");
  // IN_MOVED_TO: the agent's socket appears by rename, already listening.
  if (::inotify_add_watch(inotify.get(), path.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
    return Error::system("wait for the agent in {}", path);
  return inotify;
}

void drain_folder_watch(const Fd& watch) {
  std::array<char, 4096> events;
  while (::read(watch.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace glidepod::glue
