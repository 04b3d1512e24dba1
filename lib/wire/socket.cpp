#include "lib/wire/socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace glidepod::wire {

namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return error("socket path {} is longer than {} bytes", path, sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> new_socket(int flags) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) return Error::system("socket");
  return fd;
}

}  // namespace

Result<Fd> listen_at(const std::string& path, unsigned mode) {
  const std::string temporary = path + ".new";
  const sockaddr_un address = TRY(address_of(temporary));
  Fd fd = TRY(new_socket(SOCK_NONBLOCK));
  ::unlink(temporary.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error::system("bind {}", temporary);
  if (::chmod(temporary.c_str(), mode) != 0) return Error::system("chmod {}", temporary);
  if (::listen(fd.get(), SOMAXCONN) != 0) return Error::system("listen at {}", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return Error::system("rename {} to {}", temporary, path);
  return fd;
}

Result<Fd> accept_from(const Fd& listener) {
  Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) return Error::system("accept");
  return fd;
}

Result<Fd> connect_to(const std::string& path, int flags) {
  const sockaddr_un address = TRY(address_of(path));
  Fd fd = TRY(new_socket(flags));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error::system("connect to {}", path);
  return fd;
}

Result<Peer> peer_of(const Fd& socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return Error::system("credentials of the peer");
  Peer peer{credentials.pid, credentials.uid, credentials.gid, std::vector<gid_t>(64)};
  length = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
  int got = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &length);
  if (got != 0 && errno == ERANGE) {  // the kernel has set the length that it needs
    peer.groups.resize(length / sizeof(gid_t));
    got = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &length);
  }
  if (got != 0) return Error::system("groups of the peer");
  peer.groups.resize(length / sizeof(gid_t));
  return peer;
}

}  // namespace glidepod::wire
