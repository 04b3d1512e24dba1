#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::wire {

// Makes a listening, non-blocking Unix stream socket at the path. It appears there by rename, already
// listening and with this mode, so whoever sees the name can connect. It replaces a socket that an earlier
// run left.
Result<Fd> listen_at(const std::string& path, unsigned mode);

// Takes the next waiting connection, close-on-exec and non-blocking. An invalid Fd if none waits.
Result<Fd> accept_from(const Fd& listener);

// Connects to a socket. Fails with ENOENT or ECONNREFUSED if nobody listens there. With SOCK_NONBLOCK it
// fails with EAGAIN if the listener does not accept, so that the call would have to wait.
Result<Fd> connect_to(const std::string& path, int flags = 0);

// Who connected, as the kernel recorded it at connect(2). The peer cannot change this later.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
};
Result<Peer> peer_of(const Fd& socket);

}  // namespace glidepod::wire
