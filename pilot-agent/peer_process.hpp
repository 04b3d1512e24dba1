#pragma once

#include <string>
#include <string_view>

#include "lib/base/fd.hpp"

namespace glidepod::agent {

// The process at the other end of a connection.
struct PeerProcess {
  Fd pidfd;                       // none: it has ended
  std::string container_id;       // empty: its control group does not tell
  bool in_own_container = false;  // that of this process; false where that cannot be told
};

// Whose connection it is, by the kernel's pidfd for it (Linux 6.5), else by SO_PEERCRED: then another process
// that has its number would have to come while the connection waits to be accepted, after all other numbers
// were used up. What is said of it was read while it lived.
PeerProcess find_peer_process(const Fd& connection);

// Whether a process is in this one's control groups or below them, in every hierarchy, from the texts of its
// /proc/PID/cgroup and of our own. The pod's other containers have groups beside ours.
bool within_own_groups(std::string_view cgroup, std::string_view own_cgroup);

}  // namespace glidepod::agent
