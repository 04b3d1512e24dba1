#include "glue/users.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "glue/safe_open.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

constexpr std::size_t k_longest_file = std::size_t{4} << 20;

std::string field(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 255)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f || c == ':' ? '_' : c;
  }
  return result;
}

// Whether a line of the file has this id (its third field) or this name (its first).
struct Known {
  bool id = false;
  bool name = false;
};
Known look_up(std::string_view file, std::string_view name, std::string_view id) {
  Known known;
  while (!file.empty()) {
    const auto line = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(line.size() + 1, file.size()));
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    known.name |= line.substr(0, first) == name;
    const auto third = line.substr(second + 1);
    known.id |= third.substr(0, third.find(':')) == id;
  }
  return known;
}

// What comes first, the end of the last line if that is missing, then a name not yet taken.
std::optional<std::string> start_of_line(std::string_view file, std::string_view wanted,
                                         std::string_view id) {
  std::string name = field(wanted.empty() ? "user" : wanted);
  const Known known = look_up(file, name, id);
  if (known.id) return std::nullopt;
  if (known.name || wanted.empty()) name.append("_").append(id);
  return (file.empty() || file.ends_with('\n') ? "" : "\n") + name;
}

Fd open_below(const Fd& root, const char* path, int flags) {
  return open_without_links(root.get(), path, flags, RESOLVE_BENEATH, (flags & O_CREAT) != 0 ? 0644 : 0);
}

using MakeLine = std::function<std::optional<std::string>(std::string_view file)>;

Result<void> append_line(const Fd& root, const char* path, const MakeLine& make_line) {
  // O_NONBLOCK: opening a FIFO must not wait.
  Fd fd = open_below(root, path, O_RDONLY | O_NONBLOCK);
  if (!fd && errno == ENOENT) fd = open_below(root, path, O_RDONLY | O_CREAT | O_EXCL);
  if (!fd) return Error::system("open /{}", path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != 0)
    return error("/{} is not a regular file of root's", path);
  const auto line = make_line(TRY(read_all(fd, path, k_longest_file)));
  if (!line) return {};
  const Fd end = open_below(root, path, O_WRONLY | O_APPEND | O_NONBLOCK);
  if (!end) return Error::system("open /{} for writing", path);
  return write_all(end, *line).in(path);
}

}  // namespace

std::optional<std::string> passwd_line(std::string_view passwd, std::string_view name, uid_t uid, gid_t gid,
                                       std::string_view home) {
  const auto start = start_of_line(passwd, name, std::to_string(uid));
  if (!start) return std::nullopt;
  return fmt::format("{}:x:{}:{}::{}:/bin/sh\n", *start, uid, gid, field(home.empty() ? "/" : home));
}

std::optional<std::string> group_line(std::string_view group, std::string_view name, gid_t gid) {
  const auto start = start_of_line(group, name, std::to_string(gid));
  if (!start) return std::nullopt;
  return fmt::format("{}:x:{}:\n", *start, gid);
}

Result<void> add_user(const std::string& root, std::string_view name, uid_t uid, gid_t gid,
                      std::string_view home) {
  const Fd folder = TRY(open_file(root, O_PATH | O_DIRECTORY));
  if (::mkdirat(folder.get(), "etc", 0755) != 0 && errno != EEXIST) return Error::system("create /etc");
  TRY(append_line(folder, "etc/passwd",
                  [&](std::string_view file) { return passwd_line(file, name, uid, gid, home); }));
  return append_line(folder, "etc/group", [&](std::string_view file) { return group_line(file, name, gid); });
}

}  // namespace glidepod::glue
