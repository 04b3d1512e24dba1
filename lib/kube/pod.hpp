#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/kube/pulls.hpp"

namespace glidepod::kube {

// How an instance of a container ended.
struct Termination {
  std::string reason;  // "OOMKilled", "Error", "StartError" ...
  std::string message;
  int exit_code = 0;
  int signal = 0;
  std::string container_id;  // "containerd://ID"
};

// The prefix of the annotations with the size of all payload containers of a pod together. Their names go on
// as in a ResourceQuota: requests.cpu, requests.memory, limits.cpu, limits.memory.
inline constexpr const char* k_payload_size = "glidepod.io/";

// CPUs in thousandths, memory in bytes; 0: none, or not known.
struct Amount {
  std::int64_t cpu = 0, memory = 0;
  friend bool operator==(const Amount&, const Amount&) = default;
};
struct Size {
  Amount request, limit;
  friend bool operator==(const Size&, const Size&) = default;
};

// What the kubelet last said of one container.
struct ContainerStatus {
  enum class State : std::uint8_t { unknown, waiting, running, terminated };
  std::string name;
  State state = State::unknown;
  std::string reason;   // why it waits: "ErrImagePull" ...
  std::string message;  // why it waits, in the kubelet's words
  std::optional<Termination> terminated;
  std::optional<Termination> last_terminated;  // of the instance before this one
  std::string image;                           // this may be another tag of the same content
  std::string image_id;                        // "docker.io/library/alpine@sha256:..." or "sha256:..."
  std::string container_id;
  std::int64_t restart_count = 0;
  Size size = {};  // the size in force; told from Kubernetes 1.33 on
};

struct ContainerSpec {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  Size size = {};
  // An init container that runs beside the others (restartPolicy Always, Kubernetes 1.29 and later): it
  // starts again however it has ended, and the pod's phase does not depend on it.
  bool sidecar = false;
  std::size_t place = 0;  // its index in spec.containers, or a sidecar's in spec.initContainers
};

// The name of the pilot's container in a pod.
inline constexpr std::string_view k_pilot_container = "pilot";

// The fields of a Pod that Glidepod's pilots need.
struct Pod {
  std::string name;
  std::string uid;
  std::string resource_version;
  // As in the spec, then the sidecars; other init containers are left out.
  std::vector<ContainerSpec> containers;
  std::vector<ContainerStatus> statuses;   // of all of these
  std::int64_t grace_seconds = 30;         // terminationGracePeriodSeconds
  bool pull_secrets = false;               // whether imagePullSecrets names any secret
  bool restarts = true;                    // restartPolicy is not Never
  std::vector<WantedImage> wanted_images;  // these three are annotations: see pulls.hpp
  std::vector<PulledImage> pulled_images;
  std::vector<LikelyImage> likely_images;
  // The size of all payload containers together, from four annotations that whoever made the pod wrote;
  // nothing unless all four are there.
  std::optional<Size> payload_size;
  std::int64_t generation = 0, observed_generation = 0;  // the status has the latter from Kubernetes 1.34 on
  // The node cannot do the resize of this generation: "Deferred" means not now, "Infeasible" means never.
  struct PendingResize {
    std::string reason;
    std::int64_t generation = 0;  // 0: not known
  };
  std::optional<PendingResize> pending_resize;

  // nullptr if there is none with this name.
  const ContainerStatus* status(std::string_view container) const;
  const ContainerSpec* container(std::string_view container) const;
  // The pilot's container: the one with that name, wherever admission has put it, else the first one. nullptr
  // only for a pod without containers.
  const ContainerSpec* pilot() const;
};

// Missing fields and null are left empty. A field of a wrong type is an Error that names the field.
Result<Pod> parse_pod(std::string_view json);
Result<Pod> pod_from(const nlohmann::json& object);

// A Status object, which the API sends in place of an answer.
struct Status {
  int code = 0;
  std::string reason;
  std::string message;
  std::int64_t retry_after_seconds = 0;
};
Result<Status> parse_status(std::string_view json);
Result<Status> status_from(const nlohmann::json& object);

// A resourceVersion as a number, to tell an older state from a newer one; 0 if it is no number. The API
// called it opaque, but it has always been etcd's revision. From Kubernetes 1.35 on clients may compare it.
std::int64_t version_number(std::string_view resource_version);

// A change of one container's image.
struct ImageChange {
  std::size_t place = 0;  // as in ContainerSpec
  std::string container, before, after;
  std::string version = {};  // the pod's resourceVersion; empty: any
  bool sidecar = false;
};
// The JSON Patch (RFC 6902) that makes the change and nothing else. It fails if the image is not `before`, or
// if the pod is not of that version.
std::string image_patch(const ImageChange& change);
// The size that one container is to get.
struct SizeChange {
  std::string container;
  Size size;
  friend bool operator==(const SizeChange&, const SizeChange&) = default;
};
// The JSON Patch for the subresource resize. It fails if the pod is not of this version any more. Nothing if
// the pod lacks one of the containers.
std::optional<std::string> size_patch(const Pod& pod, const std::vector<SizeChange>& changes);
// The strategic merge patch that writes one annotation and nothing else.
std::string annotation_patch(std::string_view key, std::string_view value);

// The digest "sha256:..." in an image_id that names a repository, else empty. A bare "sha256:..." is the
// digest of the image's configuration, by which it cannot be pulled.
std::string digest_of(std::string_view image_id);
// The repository in an image_id; empty if it names none.
std::string repository_of(std::string_view image_id);

}  // namespace glidepod::kube
