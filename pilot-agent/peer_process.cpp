#include "pilot-agent/peer_process.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "pilot-agent/core/proof.hpp"

namespace glidepod::agent {

namespace {
constexpr std::size_t k_longest = 65536;
}

PeerProcess find_peer_process(const Fd& connection) {
  PeerProcess result;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return result;
  result.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!result.pidfd) return result;
  auto cgroup = read_file(fmt::format("/proc/{}/cgroup", peer.pid), k_longest);
  auto own = read_file("/proc/self/cgroup", k_longest);
  // Still there, so what was read is its own.
  if (!cgroup || !own || ::syscall(SYS_pidfd_send_signal, result.pidfd.get(), 0, nullptr, 0) != 0)
    return result;
  result.container_id = container_id_in(*cgroup, *own);
  return result;
}

}  // namespace glidepod::agent
