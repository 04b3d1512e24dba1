#pragma once

#include <string>
#include <string_view>

#include "lib/base/config.hpp"
#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// All keys, with their places in one Settings. Sets what PRP has as their defaults.
void add_keys(Config& config, Settings& settings);
// Those of a section [k8s:NAME].
void add_place_keys(Config& config, const std::string& section, KubernetesSettings& settings);
// Of these, the ones that [k8s] does not have.
void add_own_place_keys(Config& config, KubernetesSettings& settings);
// Keys of [k8s] that are about jobs and pods wherever they are, and so are not in [k8s:NAME].
bool of_all_places(std::string_view key);

}  // namespace glidepod::provisioner
