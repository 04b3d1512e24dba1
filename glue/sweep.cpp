#include "glue/sweep.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"

namespace glidepod::glue {

namespace {

// Most rounds over one folder: others may put the user's files there, by hard links, as fast as they are
// removed.
constexpr int k_most_rounds = 16;
// A /dev/shm that the containers of a pod share, as pods of older templates have it, holds folders of other
// users, where this one may have files. They are looked into no deeper, and no longer than the caller says:
// another job must not make this one's cleaning long.
constexpr int k_deepest_foreign = 16;
// Nor are folders counted any deeper: each level costs a descriptor and a buffer.
constexpr int k_deepest_counted = 128;
constexpr std::size_t k_looks_at_clock = 256;  // once in so many entries

// NO_XDEV, unlike a comparison of device numbers, also stops at a bind mount of the same file system.
Fd open_folder(int parent, const char* name, int flags = O_RDONLY) {
  return open_beneath(parent, name, flags | O_DIRECTORY);
}

// What lies in such a folder is memory, and counted as that.
bool is_memory(const Fd& folder) {
  struct statfs info {};
  return ::fstatfs(folder.get(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// The job may have made its own folder unreadable, or such that neighbours in the pod can fill it. An O_PATH
// descriptor needs no permission and pins the folder, so that the mode is changed of this one and of nothing
// put in its place.
Fd open_own_folder(int parent, const char* name, uid_t owner) {
  Fd path = open_folder(parent, name, O_PATH);
  if (!path) return path;
  struct stat info {};
  if (::fstat(path.get(), &info) != 0) return Fd();
  if (info.st_uid == owner && ((info.st_mode & 0700) != 0700 || (info.st_mode & 022) != 0))
    ::chmod(fmt::format("/proc/self/fd/{}", path.get()).c_str(), 0700);
  return Fd(::openat(path.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// A neighbour in the pod may make new names for a file it can read and write
// (/proc/sys/fs/protected_hardlinks), also while the old ones are removed. Through a descriptor, as above.
void close_to_others(int parent, const char* name, uid_t owner) {
  const Fd path(::openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!path || ::fstat(path.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (info.st_uid == owner && (info.st_mode & 07777) != 0)
    ::chmod(fmt::format("/proc/self/fd/{}", path.get()).c_str(), 0);
}

// Entries of a folder, a buffer at a time, without readdir(3)'s own descriptor and with the chance to begin
// again.
class Entries {
 public:
  explicit Entries(int folder) : folder_(folder) {}
  void rewind() const { ::lseek(folder_, 0, SEEK_SET); }

  // Calls handle(name, d_type) for the next buffer's entries until it returns false. False when there are
  // none.
  template <typename Handle>
  bool next(const Handle& handle) {
    const long got = ::syscall(SYS_getdents64, folder_, buffer_.get(), k_size);
    bool any = false;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer_.get() + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      any = true;
      if (!handle(entry->d_name, entry->d_type)) break;
    }
    return any || got > 0;
  }

 private:
  static constexpr std::size_t k_size = 32768;
  int folder_;
  // Not cleared: only what the kernel has written is read.
  std::unique_ptr<char[]> buffer_{new char[k_size]};
};

struct Place {
  dev_t device;
  ino_t inode;
  bool operator==(const Place&) const = default;
};

Place place_of(int fd) {
  struct stat info {};
  ::fstat(fd, &info);
  return {info.st_dev, info.st_ino};
}

}  // namespace

void Sweep::folder(const std::string& path) {
  // The folder itself is usually a mount of its own, or the image may have it elsewhere in its own file
  // system; only below it are mounts left alone.
  Fd fd = open_tree(path);
  if (!fd && errno == ELOOP)
    fd = open_beneath(open_tree("/", O_PATH), path, O_RDONLY | O_DIRECTORY, Through::links);
  if (mode_ == Mode::count && !fd) missed_ |= errno == EACCES;
  if (mode_ == Mode::count && is_memory(fd)) return;
  if (fd) walk(std::move(fd), 0);
}

void Sweep::walk(Fd folder, int depth) {
  Entries entries(folder.get());
  const auto done = [&] {
    return (mode_ == Mode::look && found_) || left_ == 0 ||
           (foreign_depth_ > 0 && Loop::now() >= foreign_until_);
  };
  // A folder may be read while entries vanish from it, but which of the rest are then seen is not promised:
  // again, until a round removes nothing.
  for (int round = 0; round < k_most_rounds; ++round) {
    const std::uint32_t before = removed_;
    entries.rewind();
    while (!done() && entries.next([&](const char* name, unsigned char) {
      entry(folder.get(), name, depth);
      return !done();
    })) {
    }
    if (removed_ == before || done()) return;
  }
  found_ = true;
}

void Sweep::entry(int parent, const char* name, int depth) {
  struct stat info {};
  --left_;
  if (mode_ == Mode::count && left_ % k_looks_at_clock == 0 && std::chrono::steady_clock::now() >= until_)
    left_ = 0;
  if (::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (info.st_uid == user_.uid) {
    if (mode_ == Mode::count) return count(parent, name, info, depth);
    if (mode_ == Mode::remove && S_ISREG(info.st_mode) && info.st_nlink > 1)
      close_to_others(parent, name, user_.uid);
    if (!remove(parent, name, S_ISDIR(info.st_mode))) found_ = true;
    return;
  }
  if (!S_ISDIR(info.st_mode) || depth >= k_deepest_foreign) return;
  const bool in_group = info.st_gid == user_.gid || std::ranges::count(user_.groups, info.st_gid) != 0;
  const bool writable = (info.st_mode & S_IWOTH) != 0 || (in_group && (info.st_mode & S_IWGRP) != 0);
  // Root's folders are the image's; another job's are of interest only where this one could write.
  const bool foreign = info.st_uid != 0;
  if (foreign && (!writable || Loop::now() >= foreign_until_)) return;
  foreign_depth_ += foreign;
  if (Fd folder = open_folder(parent, name)) walk(std::move(folder), depth + 1);
  foreign_depth_ -= foreign;
}

// A file of several names is counted in parts, so that nothing has to be remembered: the names that are here
// make up the whole.
void Sweep::count(int parent, const char* name, const struct stat& info, int depth) {
  const bool is_folder = S_ISDIR(info.st_mode);
  bytes_ +=
      info.st_blocks * 512 / static_cast<std::int64_t>(is_folder ? 1 : std::max<nlink_t>(info.st_nlink, 1));
  if (!is_folder) return;
  if (depth >= k_deepest_counted)
    missed_ = true;
  else if (Fd folder = open_folder(parent, name))
    walk(std::move(folder), depth + 1);
  else  // but for what has gone meanwhile, and other mounts
    missed_ |= errno != ENOENT && errno != EXDEV;
}

bool Sweep::remove(int parent, const char* name, bool is_folder) {
  if (mode_ == Mode::look) return false;
  if (unlink(parent, name, is_folder ? AT_REMOVEDIR : 0)) return true;
  return is_folder && mode_ == Mode::remove && remove_tree(parent, name);
}

bool Sweep::unlink(int parent, const char* name, int flags) {
  if (::unlinkat(parent, name, flags) != 0) return false;
  ++removed_;
  return true;
}

// Removes entries until the folder is empty, one of them is a folder to be emptied first, or one resists.
Sweep::Emptied Sweep::empty(int folder, Fd* below) {
  Entries entries(folder);
  Emptied result = Emptied::all;
  const auto remove_entry = [&](const char* name, unsigned char type) {
    if (type != DT_DIR && unlink(folder, name, 0)) return true;
    // EISDIR is for file systems that do not tell the type.
    const bool is_folder = type == DT_DIR || errno == EISDIR;
    if (is_folder && unlink(folder, name, AT_REMOVEDIR)) return true;
    if (is_folder) *below = open_own_folder(folder, name, user_.uid);
    result = *below ? Emptied::enter : Emptied::failed;
    return false;
  };
  bool again = true;
  for (int round = 0; again && result == Emptied::all; ++round) {
    if (round == k_most_rounds) return Emptied::failed;
    const std::uint32_t before = removed_;
    entries.rewind();
    while (result == Emptied::all && entries.next(remove_entry)) {
    }
    again = removed_ != before;
  }
  return result;
}

// One descriptor and sixteen bytes a level: the job chooses how deep its folders nest. Down by name, up by
// "..", which must lead to where it came from. The first thing that resists ends it: the container is given
// up then.
bool Sweep::remove_tree(int parent, const char* name) {
  Fd current = open_own_folder(parent, name, user_.uid);
  std::vector<Place> above;
  while (current) {
    Fd below;
    const Emptied emptied = empty(current.get(), &below);
    if (emptied == Emptied::failed) return false;
    if (emptied == Emptied::enter) {
      above.push_back(place_of(current.get()));
      current = std::move(below);
    } else if (above.empty()) {
      return unlink(parent, name, AT_REMOVEDIR);
    } else {
      current.reset(::openat(current.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!current || place_of(current.get()) != above.back()) return false;
      above.pop_back();
    }
  }
  return false;
}

}  // namespace glidepod::glue
