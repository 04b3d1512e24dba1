#include "glue/descriptors.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <vector>

namespace glidepod::glue {

namespace {

constexpr int k_first_unused = 3;

bool close_range(int first, int last, unsigned flags) {
  return first > last ||
         ::syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(last), flags) == 0;
}

// The open ones, without the one that lists them.
std::vector<int> open_descriptors(int first) {
  std::vector<int> result;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return result;
  while (const dirent* entry = ::readdir(folder)) {
    int fd = -1;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, fd).ptr != end) continue;
    if (fd >= first && fd != ::dirfd(folder)) result.push_back(fd);
  }
  ::closedir(folder);
  return result;
}

}  // namespace

void close_at_exec_from(int first) {
  if (close_range(first, ~0U >> 1, CLOSE_RANGE_CLOEXEC)) return;
  for (const int fd : open_descriptors(first)) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void close_all_but(int kept) {
  if (close_range(k_first_unused, kept - 1, 0) && close_range(kept + 1, ~0U >> 1, 0)) return;
  for (const int fd : open_descriptors(k_first_unused))
    if (fd != kept) ::close(fd);
}

}  // namespace glidepod::glue
