#pragma once

#include <string>

#include "lib/base/fd.hpp"

namespace glidepod::agent {

// The process at the other end of a connection.
struct PeerProcess {
  Fd pidfd;                  // none: it has ended, or this kernel has no such thing
  std::string container_id;  // empty: its control group does not tell
};

// By SO_PEERCRED and /proc. Where the process has ended meanwhile and another has its number, the connection
// ends, too, before anything can come of it.
PeerProcess find_peer_process(const Fd& connection);

}  // namespace glidepod::agent
