#include "lib/wire/streams.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::wire {
namespace {

constexpr std::array<std::string_view, 3> k_names = {"standard input (`input`, `+In`)",
                                                     "standard output (`output`, `+Out`)",
                                                     "standard error (`error`, `+Err`)"};
constexpr std::size_t k_longest_path = 4096;
constexpr unsigned k_memory_devices = 1;  // the major number of /dev/null and the like
constexpr unsigned k_null = 3;

// The kernel's name of a descriptor's file, which has no links in it. Empty if there is none, or a very long
// one.
std::string name_of(const Fd& fd) {
  std::string name(k_longest_path, '\0');
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), name.data(), name.size());
  name.resize(
      length < 0 || static_cast<std::size_t>(length) == name.size() ? 0 : static_cast<std::size_t>(length));
  return name;
}

// Whether this name is below the sandbox and leads to this very file.
bool lies_below(const struct stat& file, const std::string& name, const StreamRules& rules) {
  if (!rules.sandbox.starts_with(rules.volume)) return false;
  const Fd held(::open(rules.volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!held) return false;
  // The path of the volume may contain a link, but the kernel's names never do.
  const std::string volume = name_of(held);
  const std::string sandbox = volume + rules.sandbox.substr(rules.volume.size());
  if (!name.starts_with(sandbox) || name.size() <= sandbox.size() || name[sandbox.size()] != '/')
    return false;
  struct stat found {};
  if (sandbox == volume) return ::fstat(held.get(), &found) == 0 && found.st_dev == file.st_dev;
  const Fd at = open_beneath(held, name.substr(volume.size() + 1), O_PATH, Through::mounts);
  return at && ::fstat(at.get(), &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino;
}

// Whether a socket is one of a pair: it is connected, and neither side has an address. A connection to a
// daemon has one.
bool is_pair(const Fd& fd) {
  const auto nameless = [&](int (*ask)(int, sockaddr*, socklen_t*)) {
    sockaddr_un address{};
    socklen_t length = sizeof address;
    return ask(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
           address.sun_family == AF_UNIX && length == sizeof address.sun_family;
  };
  return nameless([](int s, sockaddr* a, socklen_t* l) { return ::getsockname(s, a, l); }) &&
         nameless([](int s, sockaddr* a, socklen_t* l) { return ::getpeername(s, a, l); });
}

// Why a stream is refused; empty: it is allowed.
std::string objection(const Fd& fd, const StreamRules& rules) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  struct stat info {};
  if (flags < 0 || ::fstat(fd.get(), &info) != 0) return "it is not open";
  const std::string name = name_of(fd);
  const auto shown = one_line(name, 200);
  if (flags & O_PATH) return fmt::format("{} was opened as a path only", shown);
  switch (info.st_mode & S_IFMT) {
    case S_IFDIR:
      return fmt::format("{} is a folder", shown);
    case S_IFSOCK:
      return is_pair(fd) ? "" : "it is a socket with an address";
    case S_IFCHR: {
      if (info.st_rdev == makedev(k_memory_devices, k_null)) return "";
      const bool terminal = ::isatty(fd.get()) != 0;
      if (terminal && (!rules.terminal || *rules.terminal == info.st_rdev)) return "";
      return fmt::format("{} is a device", shown);
    }
    case S_IFIFO:
      if (name.starts_with("pipe:[")) return "";
      [[fallthrough]];
    case S_IFREG:
      if (info.st_nlink == 0) return "it is a file without a name";
      return lies_below(info, name, rules) ? "" : fmt::format("{} is not in the job's own folder", shown);
    default:
      return fmt::format("{} is a device", shown);
  }
}

}  // namespace

Result<void> judge_streams(const std::vector<Fd>& streams, const StreamRules& rules) {
  for (std::size_t i = 0; i < std::min(streams.size(), k_names.size()); ++i) {
    const std::string wrong = objection(streams[i], rules);
    if (!wrong.empty())
      return error("the job's {} is refused: {}. It may be a file in the job's folder, a pipe or /dev/null",
                   k_names[i], wrong)
          .with(RefusedStream{static_cast<int>(i)});
  }
  return {};
}

dev_t terminal_of(pid_t process) {
  constexpr std::size_t k_field = 4;  // after the name come state, parent, group, session, terminal
  const auto stat = read_file(fmt::format("/proc/{}/stat", process), 4096);
  if (!stat) return 0;
  const auto fields = split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
  const auto number = fields.size() > k_field ? parse_integer(fields[k_field]) : Result<std::int64_t>(0);
  if (!number) return 0;
  const auto device = static_cast<unsigned>(*number);
  return makedev(device >> 8 & 0xfff, (device & 0xff) | (device >> 12 & 0xfff00));
}

}  // namespace glidepod::wire
