#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/api_error.hpp"

namespace glidepod::podhost {

using Json = nlohmann::json;

enum class PullPolicy : std::uint8_t { always, if_not_present, never };
enum class RestartPolicy : std::uint8_t { always, on_failure, never };
enum class Seccomp : std::uint8_t { runtime_default, unconfined };

struct EnvVar {
  enum class Source : std::uint8_t { literal, field, resource };
  std::string name;
  Source source = Source::literal;
  std::string value;               // literal: the text; field: the path; resource: "limits.cpu" ...
  std::string container;           // resource: another container's name, or empty
  std::int64_t divisor_milli = 0;  // resource: 0 means the default of 1
};

struct VolumeMount {
  std::string name, mount_path, sub_path;
  bool read_only = false;
};

struct SecurityContext {
  std::optional<std::int64_t> run_as_user, run_as_group;
  bool run_as_non_root = false;
  std::vector<std::string> add, drop;  // capabilities as written, without CAP_
  bool allow_escalation = true;
  bool read_only_root = false;
  bool privileged = false;
  Seccomp seccomp = Seccomp::runtime_default;
};

// Unset is nothing asked for; CPU in thousandths, memory in bytes.
struct Resources {
  std::optional<std::int64_t> cpu_limit_milli, cpu_request_milli, memory_limit, memory_request;
  friend bool operator==(const Resources&, const Resources&) = default;
};

struct ContainerSpec {
  std::string name, image, working_dir;
  std::vector<std::string> command, args;
  std::vector<EnvVar> env;
  std::vector<VolumeMount> mounts;
  SecurityContext security;
  Resources resources;
  PullPolicy pull_policy = PullPolicy::if_not_present;
  std::string termination_message_path = "/dev/termination-log";
  bool termination_falls_back_to_logs = false;
  // An init container with restartPolicy Always: the next one starts when it runs, it runs beside the pod's
  // containers and starts again however it ended, and it ends after them.
  bool sidecar = false;
};

struct ProjectedFile {
  std::string path, field_path;
};

struct Volume {
  enum class Kind : std::uint8_t { empty_dir, host_path, projected };
  std::string name;
  Kind kind = Kind::empty_dir;
  bool in_memory = false;                  // empty_dir
  std::optional<std::int64_t> size_limit;  // empty_dir, bytes
  std::string host_path, host_path_type;   // host_path
  bool api_socket = false;                 // projected: a service account token was asked for
  std::vector<ProjectedFile> files;        // projected: the downward API's
};

struct PodSpec {
  std::string name, name_space, uid, hostname, service_account;
  std::vector<ContainerSpec> init_containers, containers;
  std::vector<Volume> volumes;
  RestartPolicy restart_policy = RestartPolicy::always;
  std::int64_t grace_seconds = 30;
  std::optional<std::int64_t> deadline_seconds;
  bool share_processes = false;
  bool host_network = false;
  std::optional<std::int64_t> fs_group;
  std::vector<std::int64_t> supplemental_groups;

  const ContainerSpec* find(const std::string& container) const;
};

// What this host permits.
struct SpecRules {
  std::string node_name;
  bool allow_privileged = false;
};

// A pod as podhost will run it. Every field it would not honour is an error that names it; warnings name the
// few that are accepted without effect.
struct ParsedPod {
  PodSpec spec;
  std::vector<std::string> warnings;
};
Result<ParsedPod> parse_pod(const Json& pod, const SpecRules& rules);

// Fills in what the API server would: restartPolicy, imagePullPolicy, terminationMessagePath and so on.
void set_defaults(Json& pod, const SpecRules& rules);

// "BestEffort", "Burstable" or "Guaranteed".
std::string qos_class(const PodSpec& pod);

bool valid_dns_subdomain(std::string_view name);
bool valid_dns_label(std::string_view name);

}  // namespace glidepod::podhost
