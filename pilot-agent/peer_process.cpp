#include "pilot-agent/peer_process.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/core/proof.hpp"

namespace glidepod::agent {

namespace {
constexpr std::size_t k_longest = 65536;
constexpr int k_peer_pidfd = 77;  // SO_PEERPIDFD, which older headers do not have

Fd pidfd_of(const Fd& connection, pid_t pid) {
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  if (::getsockopt(connection.get(), SOL_SOCKET, k_peer_pidfd, &pidfd, &length) == 0) return Fd(pidfd);
  if (errno != ENOPROTOOPT) return Fd();
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool lives(const Fd& pidfd) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), 0, nullptr, 0) == 0 || errno == EPERM;
}

// A line is NUMBER:CONTROLLERS:PATH, one of each hierarchy; a path may have colons.
std::map<std::string, std::string> groups_in(std::string_view cgroup) {
  std::map<std::string, std::string> groups;
  for (const std::string& line : split(cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second != std::string::npos) groups[line.substr(0, second)] = line.substr(second + 1);
  }
  return groups;
}

// Of what is beside a control group namespace's root, /proc says /../NAME.
bool lies_within(std::string_view path, std::string_view own) {
  if (path == own) return true;
  if (own == "/") return path.starts_with('/') && !path.starts_with("/..");
  return path.size() > own.size() && path.starts_with(own) && path[own.size()] == '/';
}
}  // namespace

bool within_own_groups(std::string_view cgroup, std::string_view own_cgroup) {
  const auto theirs = groups_in(cgroup), own = groups_in(own_cgroup);
  return !own.empty() && std::ranges::all_of(own, [&](const auto& group) {
    const auto found = theirs.find(group.first);
    return found != theirs.end() && lies_within(found->second, group.second);
  });
}

PeerProcess find_peer_process(const Fd& connection) {
  PeerProcess result;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return result;
  Fd pidfd = pidfd_of(connection, peer.pid);
  if (!pidfd) return result;
  auto cgroup = read_file(fmt::format("/proc/{}/cgroup", peer.pid), k_longest);
  auto own = read_file("/proc/self/cgroup", k_longest);
  // Still there, so what was read is its own.
  if (!lives(pidfd)) return result;
  result.pidfd = std::move(pidfd);
  if (!cgroup || !own) return result;
  result.container_id = container_id_in(*cgroup, *own);
  result.in_own_container = within_own_groups(*cgroup, *own);
  return result;
}

}  // namespace glidepod::agent
