#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "provisioner/settings/ini.hpp"

namespace glidepod::provisioner {

using Seconds = std::chrono::seconds;
using Dict = std::vector<std::pair<std::string, std::string>>;  // in the order of the file
using List = std::vector<std::string>;

// Whether jobs must ask for the pods' namespace by RequestK8SNamespace: by its name, or by a pattern that the
// name as a whole matches.
enum class NamespaceMatching : std::uint8_t { no, name, pattern };

// What asks for pods: idle jobs, or what the negotiator would use; `both`: idle jobs, and the other is told.
enum class DemandBy : std::uint8_t { query, offline, both };

// When a kubelet pulls the pilot image.
enum class PullPolicy : std::uint8_t { always, if_not_present, never };
const char* to_string(PullPolicy policy);  // as Kubernetes has it

// How much more than it asks for a container may use: something, or nothing.
enum class QosClass : std::uint8_t { burstable, guaranteed };
const char* to_string(QosClass qos_class);  // as Kubernetes has it

// What payload containers are: containers of their pod, or sidecars (init containers with restartPolicy
// Always).
enum class Layout : std::uint8_t { containers, sidecars };

// [htcondor]: which jobs count, and how the pool is asked.
struct HtcondorSettings {
  std::string pool;  // the collector to ask; empty: as this machine's HTCondor is configured
  std::string schedd_whitelist_regexp = ".*";
  std::string schedd_identity_regexp = ".*";
  std::string startd_identity_regexp = ".*";
  std::string additional_requirements;
  NamespaceMatching force_namespace_matching = NamespaceMatching::name;
  Seconds schedd_time_limit{60};
  std::int64_t parallel_queries = 8;
  DemandBy demand = DemandBy::query;
  std::int64_t lookahead = 0;  // most jobs not yet materialised to count beside the idle ones of a cluster
};

// What both backends tell their pilots and label them with.
struct PilotSettings {
  std::string app_name;
  std::string condor_host;
  std::string additional_requirements;
  std::string priority_class, priority_class_cpu, priority_class_gpu;
  Dict labels, envs, pvc_volumes;
  std::int64_t max_pods_per_cluster = 20;
  std::int64_t max_submit_pods_per_cluster = 1000;
};

// [k8s]
struct KubernetesSettings : PilotSettings {
  std::string name_space;  // empty: the one that the provisioner runs in
  std::string domain = "optiputer.net";
  std::string force_namespace_matching = "yes";                 // handed to the pilot as it is written
  NamespaceMatching pilots_matching = NamespaceMatching::name;  // what the pilot makes of that
  // Empty or not set: the template's; without a template, PRP's default.
  std::string image;
  std::optional<PullPolicy> image_pull_policy;
  std::string service_account_name;
  Seconds job_ttl{86400};  // how long a finished pod stays
  std::optional<bool> request_fuse;
  bool use_large_limit = true;  // of burstable pods
  QosClass qos_class = QosClass::burstable;
  Layout layout = Layout::containers;
  std::int64_t storage_mbs = 20000;  // least disk of a pod; -1: the job's own request only
  Dict resources, annotations, node_selectors, node_affinity, config_volumes;
  List tolerations;
  // Ours:
  std::string pod_template;  // a file with the pilot pod as JSON; empty: one container, as PRP's
  std::optional<std::string> token_secret;
  std::string gpu_type_label = "nvidia.com/gpu.product";  // empty: GPU types do not matter
  Dict gpu_resources;       // the resource that GPUs of a kind are; "*": of all others, else nvidia.com/gpu
  Seconds pod_lifetime{0};  // activeDeadlineSeconds; 0: none
  List image_pull_secrets;
  std::string default_image;  // of jobs that name none; empty: these are no demand
  std::string image_store,
      image_store_repository;  // its URL, what it calls its images; empty: the template's
  // What slots have beside HTCondor's attributes and ours; "*": anything; none: what the pod shows.
  std::optional<List> pilot_attributes = List{"*"};
  bool pilot_jobs = false;      // pilots take jobs that are pilots themselves
  bool gpu_jobs_only = true;    // pilots with GPUs take only jobs that ask for GPUs
  bool gpus_on_nodes = true;    // nodes list their GPUs, which those of a DRA driver are not
  std::int64_t least_fill = 0;  // percent of a free pod's CPUs or memory that a job must ask for
  bool pullers = false;         // images of jobs that are not on a node are pulled by pods of their own
  std::int64_t pullers_per_node = 8, pullers_in_all = 100, pullers_per_minute = 20;
  Seconds puller_deadline{600};
  bool born_ready = false;  // payload containers of new pods start on images that jobs want
  List born_ready_from;     // registries or paths of these; empty: all
  // Payload containers that pods get beyond the template's; none: as many as the provisioner thinks good.
  std::optional<std::int64_t> warm;
  bool pod_events = true;  // what pilots do is told as Events of their pods
  // Of a named place, [k8s:NAME], alone:
  std::string place;                        // NAME
  std::string server, token_file, ca_file;  // its API; empty: as for the only place
  std::int64_t weight = 1, max_pods = 0;
};

// [lancium]
struct LanciumSettings : PilotSettings {
  std::string image = "dummy";
  Seconds job_ttl{86400};
  // Ours:
  std::string lcli = "lcli";
  Seconds call_time_limit{60};
  List shapes{"16/0", "48/0", "12/4", "48/16"};  // cores/GPUs
  std::int64_t megabytes_per_core = 2048;
  std::string gpu_model = "k80";
  std::string token_file = "prp-wn.token";
  std::string startup_command = "/usr/local/sbin/supervisord_startup.sh";
  std::int64_t sightings_before_removal = 10;
  std::int64_t removals_per_cycle = 100;
};

// [glidepod]: sizes, curbs, caps, the breaker and times; 0 switches a limit off.
struct PolicySettings {
  List cpu_buckets, memory_buckets, disk_buckets;
  List job_volumes;  // PVCs that a job may ask for by RequestDiskVolumes; others are ignored
  List job_volume_folders{"/data", "/mnt", "/srv"};  // at or below which these are mounted; no '/' at the end
  List job_labels;  // node labels that a job may ask for by RequestLabels; others are ignored
  std::int64_t ramp_up_per_group = 0, ramp_up = 0;
  std::int64_t max_idle_per_group = 0, max_idle = 0;
  std::int64_t max_running_per_group = 0, max_running = 0;
  std::int64_t max_pods_per_group = 0, max_pods = 0, max_cores = 0, max_pods_per_owner = 0;
  bool waste_feedback = true;
  Seconds waste_window{3600};
  bool count_free_capacity = true;   // jobs that fit into running pods ask for no new ones
  Seconds free_capacity_limit{300};  // for so long at a time
  std::int64_t breaker_failures = 3;
  Seconds breaker_window{1800};
  Seconds breaker_first_pause{300}, breaker_longest_pause{7200};
  std::int64_t node_failures = 3;    // so many in a row, and a node is avoided, with the breaker's pauses
  std::int64_t nodes_avoided = 10;   // most at a time
  Seconds pull_limit{600};           // longer on image pulls than this counts as a failure
  Seconds register_limit{900};       // longer running without an ad in the pool counts as a failure
  Seconds take_back_after{600};      // so long more pods wait than are wanted, then they are removed
  Seconds outage_shift{600};         // pods that wait in a place that is not seen count for so long
  Seconds unschedulable_limit{600};  // without a node for longer, one pod of a group waits for room
  std::int64_t finished_kept = 100, failed_kept = 20;
  std::string status_file = "provisioner-status.json";
  bool hide_owners = false;    // in what a running instance reports
  std::string owner_key_file;  // what the pseudonyms depend on; empty: they are others after each start
};

struct Settings {
  Seconds sleep_time{120};
  HtcondorSettings htcondor;
  KubernetesSettings kubernetes;
  std::vector<KubernetesSettings>
      places;  // [k8s:NAME], with what they have from [k8s]; none: that is the only one
  LanciumSettings lancium;
  PolicySettings policy;
};

// Where a line of settings is wrong but the rest can be used.
struct Warning {
  std::string text;
};

struct LoadedSettings {
  Settings settings;
  std::vector<std::string> written;  // "[section] key = value" of each key in the files, in order
  std::vector<Warning> warnings;
};

// Reads the files in order. Unknown keys are warnings; a wrong value is an error that names the section, the
// key, the value and what is allowed.
Result<LoadedSettings> load_settings(const List& files);
Result<LoadedSettings> parse_settings(const Ini& ini);

// What changed between two readings, a line a key: "+" is new, "-" is gone.
List changes(const LoadedSettings& before, const LoadedSettings& after);

// A line a key: section, key, default, meaning.
std::string describe_settings();

}  // namespace glidepod::provisioner
