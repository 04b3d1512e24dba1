#pragma once

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::podhost {

struct ImageInfo {
  std::string id;                    // 64 hex digits
  std::vector<std::string> digests;  // repository@sha256:...
  std::string user;                  // as the image's USER says
};

struct ContainerInfo {
  std::string id, name, image_id, pod;
  std::map<std::string, std::string> labels;
  std::string state;  // created, initialized, running, stopped, exited ...
  int pid = 0, conmon_pid = 0;
  int exit_code = 0;
  int stop_signal = 15;
  bool oom_killed = false;
  std::string started, finished;  // RFC 3339
  std::string ip;                 // of its first network
};

// The part of podman that podhost uses. Errors: those with a code are of the transport (podman is away and the call
// may be repeated); those without are podman's own words. Safe from any thread; each call blocks.
class Podman {
 public:
  virtual ~Podman() = default;

  virtual Result<std::optional<ImageInfo>> find_image(const std::string& name) = 0;
  // Ends early with an error once *cancelled.
  virtual Result<void> pull(const std::string& name, const std::atomic<bool>& cancelled) = 0;

  // Creates a pod with an infra container, and starts it. Returns the infra container's id.
  virtual Result<std::string> run_pod(const nlohmann::json& config) = 0;
  // With all its containers; no error if there is none.
  virtual Result<void> remove_pod(const std::string& name) = 0;

  virtual Result<std::string> create_container(const nlohmann::json& config) = 0;
  virtual Result<void> init_container(const std::string& id) = 0;
  virtual Result<void> start_container(const std::string& id) = 0;
  virtual Result<ContainerInfo> inspect_container(const std::string& id) = 0;
  // Kills it if need be; no error if there is none.
  virtual Result<void> remove_container(const std::string& id) = 0;
  // Ids of all containers with this label, infra containers included.
  virtual Result<std::vector<std::string>> list_containers(const std::string& label) = 0;
  virtual Result<std::vector<std::string>> list_pods(const std::string& label) = 0;
};

}  // namespace glidepod::podhost
