#pragma once

#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {

// Checks that a request to the subresource resize changes only what containers ask for and may have of CPU
// and memory, and returns the pod to store: all else is kept from the old one. A resourceVersion in the new
// pod must be the old one's.
Result<Json> check_resize(const Json& old_pod, const Json& new_pod, const SpecRules& rules);

// What a pod may change of its own sizes: those of its containers other than the first, the pilot, which
// never have more together than its annotations say (kube::k_payload_size).
Result<void> refuse_own_resize(const Json& old_pod, const Json& new_pod);

}  // namespace glidepod::podhost
