#pragma once

#include <optional>
#include <string>

#include "lib/kube/api_error.hpp"

namespace glidepod::podhost {

// What a pod's own socket lets through, decided before anything is done.
struct PodRequest {
  std::string verb;  // get, list, watch, patch, create, update, delete
  std::string name_space, name, subresource;
  std::string selected_name;  // fieldSelector's metadata.name
};
Result<void> refuse_pod_request(const nlohmann::json& own_pod, const PodRequest& request);

// Of the init containers one that runs beside the others.
bool is_sidecar(const nlohmann::json& init_container);

// What a pod may change of itself: its deadline, and the images of its sidecars and of its containers other
// than the first, the pilot.
Result<void> refuse_pod_change(const nlohmann::json& old_pod, const nlohmann::json& new_pod);

}  // namespace glidepod::podhost
