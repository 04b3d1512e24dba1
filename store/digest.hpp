#pragma once

#include "lib/kube/image_reference.hpp"
#include "lib/registry/digest.hpp"

namespace glidepod::store {
using kube::is_digest;
using registry::Digest;
}  // namespace glidepod::store
