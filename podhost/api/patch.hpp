#pragma once

#include <string>
#include <string_view>

#include "lib/kube/api_error.hpp"

namespace glidepod::podhost {

// Applies a patch of the given Content-Type (strategic merge, merge, or JSON patch) to a pod. Pure; the
// result is not yet checked.
Result<nlohmann::json> apply_patch(const nlohmann::json& pod, std::string_view content_type,
                                   std::string_view body);

// Checks that an update changes only images, labels and annotations, and returns the pod to store:
// server-owned metadata and the status are kept from the old one. A resourceVersion in the new pod must be
// the old one's.
Result<nlohmann::json> check_update(const nlohmann::json& old_pod, nlohmann::json new_pod);

}  // namespace glidepod::podhost
