#pragma once

#include "glue/server.hpp"
#include "lib/base/result.hpp"

namespace glidepod::glue {

// Blocks all signals for good: those that mean something to glue are read from a descriptor. Their
// dispositions become the defaults, which the jobs inherit.
void take_over_signals();

// Makes this process what the first process of a payload container must be, and runs the server. Returns the
// exit code.
Result<int> serve(ServerOptions options, bool unprivileged);

}  // namespace glidepod::glue
