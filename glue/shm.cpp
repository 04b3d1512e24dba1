#include "glue/shm.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

std::string note_in(const std::string& folder) {
  return folder + "/pod-shm";
}

// Each file system in memory has a number of its own while it is mounted anywhere, the same in every
// container.
Result<std::string> shm_here() {
  struct stat info {};
  const Fd shm = open_tree(k_shm, O_PATH);
  if (!shm || ::fstat(shm.get(), &info) != 0) return Error::system("open {}", k_shm);
  return std::to_string(info.st_dev);
}

}  // namespace

Result<void> note_pod_shm(const std::string& folder) {
  return replace_file(note_in(folder), TRY(shm_here()) + "\n", 0444);
}

bool has_own_shm(const std::string& folder) {
  const auto pod = read_file(note_in(folder), 64);
  const auto here = shm_here();
  return pod && here && trim(*pod) != *here;
}

std::optional<uid_t> owner_of_any(const std::string& folder) {
  Fd fd = open_tree(folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd ? ::fdopendir(fd.get()) : nullptr, &::closedir);
  if (!entries) return std::nullopt;
  fd.release();
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    struct stat info {};
    if (name == "." || name == "..") continue;
    if (::fstatat(::dirfd(entries.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_uid != 0)
      return info.st_uid;
  }
  return std::nullopt;
}

}  // namespace glidepod::glue
