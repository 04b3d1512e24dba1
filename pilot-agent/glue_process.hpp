#pragma once

#include <string>

#include "lib/base/fd.hpp"

namespace glidepod::agent {

// The glue at the other end of a connection.
struct GlueProcess {
  Fd pidfd;                  // none: it has ended, or this kernel has no such thing
  std::string container_id;  // empty: its control group does not tell
};

// By SO_PEERCRED and /proc. Where the process has ended meanwhile and another has its number, the connection
// ends, too, before anything can come of it.
GlueProcess find_glue_process(const Fd& connection);

}  // namespace glidepod::agent
