#pragma once

#include "lib/base/result.hpp"
#include "store/limits.hpp"

namespace glidepod::store {

// From here on this process reads what it has open, writes to it, and asks for memory: nothing else. It has
// standard input, output and error, no user's rights and no more memory and time than the limits say. It
// cannot be undone. A system call that is not allowed ends the process by SIGSYS.
Result<void> confine(const Limits& limits);

}  // namespace glidepod::store
