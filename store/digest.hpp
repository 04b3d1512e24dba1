#pragma once

#include "lib/registry/digest.hpp"

namespace glidepod::store {
using registry::Digest;
using registry::is_digest;
}  // namespace glidepod::store
