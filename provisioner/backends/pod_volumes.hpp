#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace glidepod::provisioner {

// A volume of a pod and how it is mounted.
struct PodVolume {
  nlohmann::json volume, mount;
  bool for_jobs = false;  // payload containers mount it as well
};

// A persistent volume claim; "!" and "#" before the path make it read-only and let the host's mounts through.
PodVolume claim_volume(const std::string& claim, std::string_view path);
// The one file of a config map that has the path's name, for the pilot.
PodVolume config_volume(const std::string& config_map, const std::string& path);
// The pool's token, where HTCondor looks for it, for the pilot alone.
PodVolume token_volume(const std::string& secret);

}  // namespace glidepod::provisioner
