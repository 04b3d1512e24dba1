#pragma once

namespace glidepod::glue {

// For forked children, on every kernel since 5.6. close_range(2) came with 5.9, and its CLOSE_RANGE_CLOEXEC
// with 5.11. An old container runtime's filter may refuse it with any error.

// Makes every descriptor from this one on close at the next exec.
void close_at_exec_from(int first);
// Closes every descriptor except 0 to 2 and this one. The agent's connection must not stay open in another
// process.
void close_all_but(int kept);

}  // namespace glidepod::glue
