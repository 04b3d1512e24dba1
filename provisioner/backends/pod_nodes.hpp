#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// Which nodes a pod may run on: what the template, the settings and the job say, and what is avoided.

// The label of a node that holds its host name, mostly the node's name.
inline constexpr const char* k_host_name = "kubernetes.io/hostname";

// The pod runs only where all of these matchExpressions hold, besides what it requires already.
void require_of_node(nlohmann::json& pod, const nlohmann::json& expressions);

// Keeps the pod from nodes with these host names, and notes that in an annotation.
void avoid_nodes(nlohmann::json& pod, const List& hosts);

// What avoid_nodes() noted.
List avoided_by(const nlohmann::json& pod);

}  // namespace glidepod::provisioner
