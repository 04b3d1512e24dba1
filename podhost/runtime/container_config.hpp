#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "podhost/runtime/podman.hpp"
#include "podhost/spec/environment.hpp"
#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {

// Podman labels by which podhost finds its containers again.
namespace label {
inline constexpr const char* k_state_dir = "podhost.state-dir";
inline constexpr const char* k_uid = "podhost.pod-uid";
inline constexpr const char* k_container = "podhost.container";
inline constexpr const char* k_attempt = "podhost.attempt";
inline constexpr const char* k_image = "podhost.image";
inline constexpr const char* k_image_id = "podhost.image-id";
}  // namespace label

struct ResolvedMount {
  std::string source, target;
  bool read_only = false;
};

struct ContainerPlan {
  std::string podman_name, pod_name, state_dir;
  int attempt = 0;
  std::string image_id;  // as the status shows it
  std::vector<ResolvedMount> mounts;
  std::string message_file, log_file;
  std::string hosts_file;       // empty: /etc/hosts is podman's
  std::int64_t pids_limit = 0;  // 0: none
};

std::string podman_pod_name(const PodSpec& pod);

// The bodies of podman's pod and container create calls. Pure.
nlohmann::json pod_config(const PodSpec& pod, const std::string& state_dir);
nlohmann::json container_config(const PodSpec& pod, const ContainerSpec& container, const ImageInfo& image,
                                const PodFacts& facts, const ContainerPlan& plan);

// The limits of its control group; also the body of podman's update call.
nlohmann::json resource_limits(const Resources& resources, std::int64_t pids_limit);

// What /etc/hosts says in every container of the pod.
std::string hosts_text(const PodSpec& pod, const std::string& ip);

// What the status shows as imageID: repository@digest, of the reference's own repository if the image has it.
std::string image_id_text(const std::string& reference, const ImageInfo& image);

}  // namespace glidepod::podhost
