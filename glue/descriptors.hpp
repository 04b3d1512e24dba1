#pragma once

namespace glidepod::glue {

// For forked children, on every kernel since 5.6: close_range(2) came with 5.9, its CLOSE_RANGE_CLOEXEC with
// 5.11, and an old container runtime's filter may answer anything to it.

// Every descriptor from this one on is closed at the next exec.
void close_at_exec_from(int first);
// Closes every descriptor but 0 to 2 and this one: the agent's connection must not be held open elsewhere.
void close_all_but(int kept);

}  // namespace glidepod::glue
