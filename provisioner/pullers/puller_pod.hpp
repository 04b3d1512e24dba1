#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "provisioner/pullers/plan.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

inline constexpr const char* k_puller_name = "glidepod-puller";  // app.kubernetes.io/name

// Which pods are the pullers of this provisioner.
std::string puller_selector(std::string_view app_name);

struct PullerPodSettings {
  std::string name_space, app_name;
  std::int64_t seconds = 600;  // activeDeadlineSeconds
  bool guaranteed = false;     // it requests what it may use
};
// A pod that has its node's kubelet pull one image: it has no token, no rights, nothing of the job's, and of
// the image only the file system: what runs is our own binary.
Json make_puller(const PullPlan::New& wanted, const PullerPodSettings& settings);

Puller read_puller(const Json& pod);
// None: it wants nothing, is over, or has no node yet.
std::optional<PullingPilot> read_pulling_pilot(const Json& pod);

}  // namespace glidepod::provisioner
