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

// True of an error of the transport: podman did not answer, and whether it acted is not known. Errors without
// a code are podman's own words.
inline bool podman_away(const Error& error) {
  return error.code() == ECONNREFUSED || error.code() == ETIMEDOUT || error.code() == ECANCELED;
}

// The fact of an Error: podman does not know what was asked about.
struct PodmanLacks {};

// The part of podman that podhost uses. Safe from any thread; each call blocks.
class Podman {
 public:
  virtual ~Podman() = default;

  virtual Result<std::optional<ImageInfo>> find_image(const std::string& name) = 0;
  // Ends early with an error once *cancelled.
  virtual Result<void> pull(const std::string& name, const std::atomic<bool>& cancelled) = 0;

  // Creates a pod with an infra container, and starts it. Returns the infra container's id.
  virtual Result<std::string> run_pod(const nlohmann::json& config) = 0;
  struct PodInfo {
    std::string id, cgroup;  // the cgroup's path below each hierarchy's mount
  };
  // Nothing if podman does not know it, or no longer once a removal under way has ended.
  virtual Result<std::optional<PodInfo>> find_pod(const std::string& name) = 0;
  // With all its containers; no error if there is none.
  virtual Result<void> remove_pod(const std::string& name) = 0;

  virtual Result<std::string> create_container(const nlohmann::json& config) = 0;
  virtual Result<void> init_container(const std::string& id) = 0;
  virtual Result<void> start_container(const std::string& id) = 0;
  // Of a running one; limits that are not named stay as they are.
  virtual Result<void> update_container(const std::string& id, const nlohmann::json& limits) = 0;
  virtual Result<ContainerInfo> inspect_container(const std::string& id) = 0;
  // Kills it if need be; no error if there is none.
  virtual Result<void> remove_container(const std::string& id) = 0;
  // Ids of all containers with this label, infra containers included.
  virtual Result<std::vector<std::string>> list_containers(const std::string& label) = 0;
  virtual Result<std::vector<std::string>> list_pods(const std::string& label) = 0;
};

}  // namespace glidepod::podhost
