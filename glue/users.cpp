#include "glue/users.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "lib/base/beneath.hpp"
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

// Held for reading and appending, made where the image has none.
Result<Fd> open_account_file(const Fd& root, const std::string& path) {
  Fd held = open_beneath(root, path, O_PATH, Through::links);
  if (!held && errno == ENOENT) {
    held = open_beneath(root, path, O_RDONLY | O_CREAT | O_EXCL, Through::links, 0644);
    if (held) TRY(set_mode(held, 0644));
  }
  if (!held) return Error::system("open /{}", path);
  struct stat info {};
  if (::fstat(held.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != 0)
    return error("/{} is not a regular file of root's", path);
  // Root has no right here to write what it may not; what is its own, it may open to itself. Files in the
  // stores of Nix and Guix are such.
  const bool closed = (info.st_mode & 0600) != 0600;
  if (closed) TRY(set_mode(held, (info.st_mode & 07777) | 0600));
  auto file = reopen(held, O_RDWR | O_APPEND);
  // Whom it names has to read it. Podman makes one for root alone where the image has none.
  const mode_t mode = (info.st_mode & 07777) | 0444;
  if (closed || mode != (info.st_mode & 07777)) TRY(set_mode(held, mode));
  return std::move(file).in(path);
}

using MakeLine = std::function<std::optional<std::string>(std::string_view file)>;

Result<void> append_line(const Result<Fd>& file, std::string_view path, const MakeLine& make_line) {
  if (!file) return file.error();
  if (::lseek(file->get(), 0, SEEK_SET) != 0) return Error::system("read {}", path);
  const auto line = make_line(TRY(read_all(*file, path, k_longest_file)));
  return line ? write_all(*file, *line).in(path) : Result<void>();
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

Accounts::Accounts(const Fd& root) {
  (void)make_folder(root, "etc", 0755);
  passwd_ = open_account_file(root, "etc/passwd");
  group_ = open_account_file(root, "etc/group");
}

Result<void> Accounts::add(std::string_view name, uid_t uid, gid_t gid, std::string_view home) const {
  TRY(append_line(passwd_, "/etc/passwd",
                  [&](std::string_view file) { return passwd_line(file, name, uid, gid, home); }));
  return append_line(group_, "/etc/group",
                     [&](std::string_view file) { return group_line(file, name, gid); });
}

}  // namespace glidepod::glue
