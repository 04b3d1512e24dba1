#include "lib/base/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod {

namespace {

constexpr int k_most_links = 40;  // the kernel's own limit

Fd open_at(int folder, const char* name, int flags, unsigned mode = 0) {
  return Fd(::openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, mode));
}

Fd failed(int code) {
  errno = code;
  return Fd();
}

std::string path_of(const Fd& held) {
  return fmt::format("/proc/self/fd/{}", held.get());
}

// The kernel's number of the mount that the descriptor is on; empty: not known. Unlike a device number, it
// tells a bind mount from another mount of the same file system.
std::string mount_of(int held) {
  const auto info = read_file(fmt::format("/proc/self/fdinfo/{}", held), 65536);
  for (const auto& line : split(info ? info.value() : "", '\n'))
    if (line.starts_with("mnt_id:")) return line;
  return "";
}

// A walk along a path: the folders that it has passed, and the parts of the path that are left.
class Walk {
 public:
  Walk(int folder, const std::string& path, Through through)
      : folder_(folder), through_(through), mount_(mount_of(folder)) {
    push(path);
  }

  Fd open(int flags, unsigned mode) {
    above_.clear();
    above_.push_back(open_at(folder_, ".", O_PATH | O_DIRECTORY));
    while (!to_go_.empty() && above_.back()) {
      const std::string name = std::move(to_go_.back());
      to_go_.pop_back();
      if (name == "..") {
        if (above_.size() > 1) above_.pop_back();
      } else if (Fd next = open_at(above_.back().get(), name.c_str(), O_PATH); !next) {
        return to_go_.empty() && errno == ENOENT
                   ? checked(open_at(above_.back().get(), name.c_str(), flags, mode))
                   : Fd();
      } else if (const int code = pass(name, next, flags); code != 0) {
        return failed(code);
      } else if (to_go_.empty() && last_) {
        return checked(open_at(above_.back().get(), name.c_str(), flags, mode));
      }
    }
    return above_.back() ? open_at(above_.back().get(), ".", flags) : Fd();
  }

 private:
  void push(const std::string& path) {
    auto parts = split(path, '/');
    std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
    to_go_.insert(to_go_.end(), parts.rbegin(), parts.rend());
  }
  bool is_foreign(const Fd& held) const {
    return through_ != Through::mounts && (mount_.empty() || mount_of(held.get()) != mount_);
  }
  Fd checked(Fd opened) const { return opened && is_foreign(opened) ? failed(EXDEV) : std::move(opened); }

  // Goes on into a folder, or to where a link leads. The last part is left to be opened by its name.
  int pass(const std::string& name, Fd& next, int flags) {
    struct stat info {};
    if (::fstat(next.get(), &info) != 0) return errno;
    if (is_foreign(next)) return EXDEV;
    last_ = to_go_.empty();
    if (S_ISLNK(info.st_mode)) {
      if (last_ && (flags & O_NOFOLLOW) != 0 && (flags & O_PATH) != 0) return 0;
      if (through_ != Through::links || ++links_ > k_most_links) return ELOOP;
      const std::string target = link_at(above_.back(), name);
      if (target.starts_with('/')) above_.resize(1);
      push(target);
      last_ = false;
    } else if (!last_) {
      if (!S_ISDIR(info.st_mode)) return ENOTDIR;
      above_.push_back(std::move(next));
    }
    return 0;
  }

  int folder_;
  Through through_;
  std::string mount_;
  std::vector<Fd> above_;           // the folders passed, from the tree's own on, each held
  std::vector<std::string> to_go_;  // the parts that are left; the next one is the last element
  int links_ = 0;
  bool last_ = false;
};

}  // namespace

Fd walk_beneath(int folder, const std::string& path, int flags, Through through, unsigned mode) {
  return Walk(folder, path, through).open(flags, mode);
}

Fd open_beneath(int folder, const std::string& path, int flags, Through through, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  if (through != Through::links) how.resolve |= RESOLVE_NO_SYMLINKS;
  if (through != Through::mounts) how.resolve |= RESOLVE_NO_XDEV;
  Fd fd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
  // EPERM is an old filter's answer to an unknown call. EAGAIN means that something on the way was moved.
  if (fd || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) return fd;
  return walk_beneath(folder, path, flags, through, mode);
}

Fd open_tree(const std::string& path, int flags) {
  const Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return root ? open_beneath(root, path, flags | O_DIRECTORY, Through::mounts) : Fd();
}

Result<Fd> make_folder(const Fd& folder, const std::string& name, mode_t mode) {
  if (::mkdirat(folder.get(), name.c_str(), 0700) != 0) return Error::system("create folder {}", name);
  Fd made = open_at(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY);
  struct stat info {};
  if (!made || ::fstat(made.get(), &info) != 0) return Error::system("open folder {}", name);
  if (info.st_uid != ::geteuid()) return error("folder {} was replaced", name);
  TRY(set_mode(made, mode));
  return made;
}

Result<void> make_link(const Fd& folder, const std::string& name, const std::string& target) {
  if (::symlinkat(target.c_str(), folder.get(), name.c_str()) != 0)
    return Error::system("create link {}", name);
  return {};
}

std::string link_at(const Fd& folder, const std::string& name) {
  std::string target(4096, '\0');
  const ssize_t length = ::readlinkat(folder.get(), name.c_str(), target.data(), target.size());
  target.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return target;
}

Result<void> remove_entry(const Fd& folder, const std::string& name, int flags) {
  if (::unlinkat(folder.get(), name.c_str(), flags) != 0) return Error::system("remove {}", name);
  return {};
}

Result<Fd> reopen(const Fd& held, int flags) {
  return open_file(path_of(held), flags);
}

Result<void> set_mode(const Fd& held, mode_t mode) {
  if (::chmod(path_of(held).c_str(), mode) != 0) return Error::system("change a mode");
  return {};
}

Result<void> set_owner(const Fd& held, uid_t user, gid_t group) {
  if (::fchownat(held.get(), "", user, group, AT_EMPTY_PATH) != 0) return Error::system("change an owner");
  return {};
}

}  // namespace glidepod
