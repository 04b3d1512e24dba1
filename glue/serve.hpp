#pragma once

#include "glue/server.hpp"
#include "lib/base/result.hpp"

namespace glidepod::glue {

// All signals are blocked for good: those that mean something here are read from a descriptor. Their
// dispositions are the defaults that the jobs will have.
void take_over_signals();

// Makes this process what a payload container's first one must be, and runs the server: the exit code.
Result<int> serve(ServerOptions options, bool unprivileged);

}  // namespace glidepod::glue
