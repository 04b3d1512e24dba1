#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::wire {

// A listening, non-blocking Unix stream socket at the path. It appears there by rename, already listening and
// with this mode, so whoever sees the name can connect. Replaces a socket left by an earlier run.
Result<Fd> listen_at(const std::string& path, unsigned mode);

// The next waiting connection, close-on-exec and non-blocking; an invalid Fd if none waits.
Result<Fd> accept_from(const Fd& listener);

// Fails with ENOENT or ECONNREFUSED while nobody listens there. With SOCK_NONBLOCK also with EAGAIN, where a
// listener that does not accept would have to be waited for.
Result<Fd> connect_to(const std::string& path, int flags = 0);

// Who connected, as the kernel recorded it at connect(2): nothing the peer does later can change it.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
};
Result<Peer> peer_of(const Fd& socket);

}  // namespace glidepod::wire
