#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

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
// The pilot's token for the image store and nothing else, where the agent looks for it, and the authority of
// the store's certificate, ca.crt; for the pilot alone.
inline constexpr const char* k_image_store_folder = "/var/run/secrets/glidepod.io/image-store";
PodVolume image_store_volume();

// Gives a payload container a /dev/shm of its own, of as much as its limit of memory: the one that the
// template has, or another volume. Jobs would share the pod's, and what is in it, with their neighbours.
// Fails where another container has the same.
Result<void> give_own_shm(nlohmann::json& spec, nlohmann::json& container);
// The /dev/shm of a container that is taken out of the pod.
void drop_own_shm(nlohmann::json& spec, const nlohmann::json& container);

}  // namespace glidepod::provisioner
