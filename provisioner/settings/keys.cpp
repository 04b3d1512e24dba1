#include "provisioner/settings/keys.hpp"

#include <algorithm>

#include "lib/base/text.hpp"
#include "lib/pattern/pattern.hpp"

namespace glidepod::provisioner {

namespace {

using Key = Config::Key;

// Whatever else there is means yes, as with PRP.
NamespaceMatching matching_of(std::string_view word) {
  if (word == "no") return NamespaceMatching::no;
  return word == "pattern" ? NamespaceMatching::pattern : NamespaceMatching::name;
}

// All keys with their places in one Settings; the only list of them. A new key needs its line here, and
// nothing else but the place of its value.
class Table {
 public:
  explicit Table(Config& config) : config_(config) {}

  void add_all(Settings& s) {
    s.kubernetes.app_name = "prp-wn";
    s.kubernetes.condor_host = "prp-cm-htcondor.htcondor-portal.svc.cluster.local";
    s.lancium.app_name = "lancium-wn";
    s.lancium.condor_host = "localhost";
    s.lancium.max_submit_pods_per_cluster = 400;
    config_.section("default");
    seconds("sleep_time", &s.sleep_time, "pause between two cycles");
    add_htcondor(s.htcondor);
    config_.section("k8s");
    add_kubernetes(s.kubernetes);
    add_lancium(s.lancium);
    add_policy(s.policy);
  }
  // Of [k8s:NAME].
  void add_place(const std::string& section, KubernetesSettings& s) {
    config_.section(section);
    add_kubernetes(s);
    config_.erase([&section](const Key& key) { return key.section == section && of_all_places(key.name); });
    add_own_of_place(s);
  }
  void add_own_of_place(KubernetesSettings& s) {
    text("server", &s.server, "the cluster's API, https://HOST:PORT; empty: the provisioner's own")
        .from("0.2.0");
    text("token_file", &s.token_file, "file with the token for it; empty: the provisioner's own")
        .from("0.2.0");
    text("ca_file", &s.ca_file, "file with the certificates that its server has to be signed by")
        .from("0.2.0");
    integer("weight", &s.weight, 0,
            "share of the pods beside the other places; 0: only what they do not take", 1000)
        .from("0.2.0");
    integer("max_pods", &s.max_pods, 0, "cap: pods in this place that have not ended; 0: no cap")
        .from("0.2.0");
  }

 private:
  // The kinds: those that Config has, and those of PRP's files.
  Key& text(const char* name, std::string* target, const char* about) {
    return config_.text(name, target, about);
  }
  Key& integer(const char* name, std::int64_t* target, std::int64_t least, const char* about,
               std::int64_t most = 1'000'000'000) {
    return config_.integer(name, target, least, most, about);
  }
  Key& seconds(const char* name, Seconds* target, const char* about) {
    return config_.seconds(name, target, about);
  }
  Key& flag(const char* name, bool* target, const char* about) { return config_.flag(name, target, about); }
  Key& regexp(const char* name, std::string* target, const char* about) {
    return config_.add(name, *target, "a regular expression", about,
                       [target](std::string_view value) -> Result<void> {
                         const auto pattern = Pattern::compile(std::string(value));
                         if (!pattern)
                           return error("must be a regular expression: {}", pattern.error().message());
                         *target = value;
                         return {};
                       });
  }
  Key& list(const char* name, List* target, const char* about) {
    return config_.add(name, fmt::format("{}", fmt::join(*target, ",")), "a,b", about,
                       [target](std::string_view value) -> Result<void> {
                         *target = TRY(parse_list(value));
                         return {};
                       });
  }
  Key& dict(const char* name, Dict* target, const char* about) {
    return config_.add(name, "", "key:value,key:value", about,
                       [target](std::string_view value) -> Result<void> {
                         *target = TRY(parse_dict(value));
                         return {};
                       });
  }
  Key& sizes(const char* name, List* target, const char* about) {
    return config_.add(name, "", "rising whole numbers such as 4096,8192", about,
                       [target](std::string_view value) -> Result<void> {
                         *target = TRY(parse_list(value));
                         std::int64_t last = 0;
                         for (const auto& part : *target) {
                           const auto size = parse_integer(part);
                           if (!size || size.value() <= last)
                             return error("must be rising whole numbers such as 4096,8192");
                           last = size.value();
                         }
                         return {};
                       });
  }

  void add_htcondor(HtcondorSettings& s) {
    config_.section("htcondor");
    regexp("schedd_whitelist_regexp", &s.schedd_whitelist_regexp, "names of the schedds whose jobs count");
    regexp("schedd_identity_regexp", &s.schedd_identity_regexp,
           "what such a schedd must be authenticated as");
    regexp("startd_identity_regexp", &s.startd_identity_regexp, "what a pilot must be authenticated as");
    text("additional_requirements", &s.additional_requirements,
         "ClassAd expression over the job; others do not count");
    text("pool", &s.pool, "collector to ask; empty: this machine's HTCondor configuration");
    seconds("schedd_time_limit", &s.schedd_time_limit, "longest wait for one answer");
    integer("parallel_queries", &s.parallel_queries, 1, "schedds asked at the same time");
    integer("lookahead", &s.lookahead, 0, "most unmaterialised jobs of a cluster that count");
    config_
        .choice("demand", &s.demand,
                {{"query", DemandBy::query}, {"offline", DemandBy::offline}, {"both", DemandBy::both}},
                "idle jobs count; offline: pods that the negotiator would use, by offline ads; both: idle "
                "jobs, and plan shows the other beside")
        .from("0.2.0");
    config_.add("force_k8s_namespace_matching", "yes", "any text",
                "no: jobs need not name the namespace in RequestK8SNamespace; pattern: it may be a pattern",
                [&s](std::string_view value) -> Result<void> {
                  s.force_namespace_matching = matching_of(value);
                  return {};
                });
  }

  void add_pilot(PilotSettings& s) {
    text("app_name", &s.app_name, "this provisioner's name: in the names and labels of its pods");
    text("condor_host", &s.condor_host, "CONDOR_HOST of the pilots");
    text("additional_requirements", &s.additional_requirements, "ADDITIONAL_REQUIREMENTS of the pilots");
    text("priority_class", &s.priority_class, "priority class of the pods");
    text("priority_class_cpu", &s.priority_class_cpu,
         "priority class of pods without GPUs, in place of priority_class");
    text("priority_class_gpu", &s.priority_class_gpu,
         "priority class of pods with GPUs, in place of priority_class");
    dict("labels_dict", &s.labels, "labels of the pods");
    dict("envs_dict", &s.envs, "environment of the pilots").secret();
    dict("pvc_volumes_dict", &s.pvc_volumes, "volume claims and mount paths; ! read-only, # HostToContainer");
    integer("max_pods_per_cluster", &s.max_pods_per_cluster, 0, "most waiting pods of a group");
    integer("max_submit_pods_per_cluster", &s.max_submit_pods_per_cluster, 0,
            "a group with this many pods gets no more");
  }

  void add_kubernetes(KubernetesSettings& s) {
    add_pilot(s);
    text("namespace", &s.name_space, "namespace of the pods; empty: the provisioner's own");
    text("k8s_domain", &s.domain, "K8S_DOMAIN of the pilots");
    config_.add("force_k8s_namespace_matching", "yes", "any text",
                "FORCE_K8SNAMESPACE_MATCHING of the pilots; no and pattern as in [htcondor]",
                [&s](std::string_view value) -> Result<void> {
                  s.force_namespace_matching = value;
                  // To HTCondor's == all cases of letters are one; a pilot that is told nothing takes any
                  // namespace.
                  const std::string word = lower_case(value);
                  s.pilots_matching = word.empty() ? NamespaceMatching::no : matching_of(word);
                  return {};
                });
    text("k8s_image", &s.image, "the pilot image; default: the template's, else sfiligoi/prp-portal-wn");
    config_.choice("k8s_image_pull_policy", &s.image_pull_policy,
                   {{to_string(PullPolicy::always), PullPolicy::always},
                    {to_string(PullPolicy::if_not_present), PullPolicy::if_not_present},
                    {to_string(PullPolicy::never), PullPolicy::never}},
                   "when nodes pull the pilot image");
    text("service_account_name", &s.service_account_name, "service account of the pods");
    seconds("k8s_job_ttl", &s.job_ttl, "how long a finished pod is kept");
    config_.add("request_fuse", "", "one of: yes, no",
                "request smarter-devices/fuse; default: yes without a template",
                [&s](std::string_view value) -> Result<void> {
                  if (value != "yes" && value != "no") return error("must be one of: yes, no");
                  s.request_fuse = value == "yes";
                  return {};
                });
    flag("use_large_limit", &s.use_large_limit, "request 75 % of CPUs and 80 % of memory, limit above both");
    config_
        .choice("qos_class", &s.qos_class,
                {{to_string(QosClass::burstable), QosClass::burstable},
                 {to_string(QosClass::guaranteed), QosClass::guaranteed}},
                "Guaranteed: no container may use more than it requests; one payload container a pod")
        .from("0.2.0");
    config_
        .choice("layout", &s.layout, {{"containers", Layout::containers}, {"sidecars", Layout::sidecars}},
                "what payload containers are; sidecars need kubelets of 1.32 and exclude born_ready")
        .from("0.2.0");
    config_
        .add("storage_mbs", std::to_string(s.storage_mbs), "a whole number from 0 to 1000000000, or empty",
             "least disk of a pod in MiB; empty: the job's request",
             [&s](std::string_view value) -> Result<void> {
               const auto number = parse_integer(value);
               if (!value.empty() && (!number || number.value() < 0 || number.value() > 1'000'000'000))
                 return error("must be a whole number from 0 to 1000000000, or empty");
               s.storage_mbs = value.empty() ? -1 : number.value();
               return {};
             })
        .in("MiB");
    dict("resources_dict", &s.resources, "further resources of a pod, as request and limit");
    dict("annotations_dict", &s.annotations, "annotations of the pods");
    dict("node_selectors_dict", &s.node_selectors, "node labels a pod needs");
    dict("node_affinity_dict", &s.node_affinity, "node labels and values a|b; ^key: none of them");
    dict("config_volumes_dict", &s.config_volumes, "config maps and the file each one is mounted as");
    list("tolerations_list", &s.tolerations, "NoSchedule taints that are tolerated");
    text("pod_template", &s.pod_template, "file with the pilot pod as JSON; empty: one container, as PRP's");
    config_.add(
        "token_secret", "", "any text",
        "secret with prp-wn.token, the pool's token; empty: none; default: prp-htcondor-wn-secret without a "
        "template",
        [&s](std::string_view value) -> Result<void> {
          s.token_secret = value;
          return {};
        });
    text("gpu_type_label", &s.gpu_type_label, "node label that RequestGPUTypes is about; empty: ignored");
    config_
        .add("gpu_resources", "", "kind:resource,kind:resource",
             "resource that GPUs of a kind of RequestGPUTypes are; *: of all others, else nvidia.com/gpu",
             [&s](std::string_view value) -> Result<void> {
               s.gpu_resources = TRY(parse_dict(value));
               for (const auto& [kind, resource] : s.gpu_resources)
                 if (kind.empty() || resource.find('/') == std::string::npos)
                   return error("must be kinds with resources, such as A100:nvidia.com/a100,*:amd.com/gpu");
               return {};
             })
        .from("0.2.0");
    seconds("pod_lifetime", &s.pod_lifetime, "activeDeadlineSeconds of a pod; 0: no deadline");
    list("image_pull_secrets", &s.image_pull_secrets, "secrets for pulling the pilot image");
    config_
        .add("default_image", "",
             "docker://NAME or a path below /cvmfs/singularity.opensciencegrid.org/ or "
             "/cvmfs/unpacked.cern.ch/, or empty",
             "image of jobs that name none; empty: such jobs do not count",
             [&s](std::string_view value) -> Result<void> {
               const auto image = TRY(Pattern::compile(
                   "(docker://|/cvmfs/(singularity[.]opensciencegrid[.]org|unpacked[.]cern[.]ch)/"
                   ")[A-Za-z0-9][A-Za-z0-9._:@/-]*"));
               if (!value.empty() && !TRY(image.matches(value)))
                 return error(
                     "must be docker://NAME or a path below /cvmfs/singularity.opensciencegrid.org/ or "
                     "/cvmfs/unpacked.cern.ch/, or empty");
               s.default_image = value;
               return {};
             })
        .from("0.2.0");
    config_
        .add("image_store", "", "https://HOST:PORT, or empty",
             "image store for jobs whose image is a file: pilots get its address and a token for it; empty: "
             "what the template says",
             [&s](std::string_view value) -> Result<void> {
               const auto url = TRY(Pattern::compile("https://[^/@]+/?"));
               if (!value.empty() && !TRY(url.matches(value)))
                 return error("must be https://HOST:PORT, or empty");
               s.image_store = value;
               return {};
             })
        .from("0.2.0");
    text("image_store_repository", &s.image_store_repository, "what it calls its images: its --repository")
        .from("0.2.0");
    config_
        .add(
            "pilot_attributes", "*", "names such as SiteName,HAS_*; *; or empty",
            "attributes that slots have beside HTCondor's and Glidepod's own, since jobs that require others "
            "are no demand; *: any; empty: what the pod's environment shows",
            [&s](std::string_view value) -> Result<void> {
              const auto name = TRY(Pattern::compile("[A-Za-z_][A-Za-z0-9_]*[*]?|[*]"));
              const auto names = TRY(parse_list(value));
              for (const auto& one : names)
                if (!TRY(name.matches(one)))
                  return error("must be names such as SiteName,HAS_*; *; or empty");
              s.pilot_attributes = names.empty() ? std::nullopt : std::optional(names);
              return {};
            })
        .from("0.2.0");
    flag("pilot_jobs", &s.pilot_jobs, "pilots take jobs that are pilots themselves").from("0.2.0");
    flag("gpus_on_nodes", &s.gpus_on_nodes,
         "no: nodes do not list GPUs, as with DRA, so that how many a node has is not asked")
        .from("0.2.0");
    flag("gpu_jobs_only", &s.gpu_jobs_only, "pods with GPUs take only jobs that request GPUs").from("0.2.0");
    integer("least_fill", &s.least_fill, 0,
            "free pods take only jobs that request so many percent of their CPUs or memory", 100)
        .in("percent")
        .from("0.2.0");
    flag("pullers", &s.pullers, "jobs' images that are not on a node are pulled by small pods, the pullers")
        .from("0.2.0");
    integer("pullers_per_node", &s.pullers_per_node, 1, "most pullers on a node").from("0.2.0");
    integer("pullers_in_all", &s.pullers_in_all, 1, "most pullers in all").from("0.2.0");
    integer("pullers_per_minute", &s.pullers_per_minute, 1, "most pullers made in a minute on a node")
        .from("0.2.0");
    seconds("puller_deadline", &s.puller_deadline, "how long a puller may take").from("0.2.0");
    config_
        .add("warm", "auto", "auto, off, or a whole number from 0 to 100",
             "payload containers that a pod gets beyond the template's, made ready for likely images",
             [&s](std::string_view value) -> Result<void> {
               const auto number = value == "off" ? Result<std::int64_t>(0) : parse_integer(value);
               if (value != "auto" && value != "off" &&
                   (!number || number.value() < 0 || number.value() > 100))
                 return error("must be auto, off, or a whole number from 0 to 100");
               s.warm = value == "auto" ? std::nullopt : std::optional(number.value());
               return {};
             })
        .from("0.2.0");
    flag("born_ready", &s.born_ready,
         "payload containers of new pods, but the first, start on images that jobs want")
        .from("0.2.0");
    list("born_ready_from", &s.born_ready_from, "registries or paths that these may come from; empty: all")
        .from("0.2.0");
    flag("pod_events", &s.pod_events, "what pilots do is told as Events of their pods").from("0.2.0");
  }

  void add_lancium(LanciumSettings& s) {
    config_.section("lancium");
    add_pilot(s);
    text("lancium_image", &s.image, "the pilot image");
    seconds("lancium_job_ttl", &s.job_ttl, "accepted for PRP's files; finished jobs go after ten sightings");
    text("lcli", &s.lcli, "Lancium's command line program");
    seconds("call_time_limit", &s.call_time_limit, "longest wait for one lcli command");
    config_.add("shapes", fmt::format("{}", fmt::join(s.shapes, ",")), "cores/GPUs such as 16/0,12/4",
                "sizes that can be had, as cores/GPUs", [&s](std::string_view value) -> Result<void> {
                  s.shapes = TRY(parse_list(value));
                  for (const auto& shape : s.shapes) {
                    const auto parts = split(shape, '/');
                    const auto cores = parse_integer(parts[0]);
                    const auto gpus =
                        parts.size() == 2 ? parse_integer(parts[1]) : Result<std::int64_t>(error("missing"));
                    if (!cores || !gpus || cores.value() < 1 || gpus.value() < 0)
                      return error("must be cores/GPUs such as 16/0,12/4");
                  }
                  return {};
                });
    integer("megabytes_per_core", &s.megabytes_per_core, 1, "memory of a shape, for each core").in("MB");
    text("gpu_model", &s.gpu_model, "--gpu of shapes with GPUs");
    text("token_file", &s.token_file, "the pool's token as an input file; empty: none");
    text("startup_command", &s.startup_command, "what the pilot image starts; its environment follows");
    integer("sightings_before_removal", &s.sightings_before_removal, 1,
            "a finished job is deleted when it was seen so often");
    integer("removals_per_cycle", &s.removals_per_cycle, 0, "most deletions in one cycle");
  }

  void add_policy(PolicySettings& s) {
    config_.section("glidepod");
    sizes("cpu_buckets", &s.cpu_buckets, "CPUs are rounded up to these; above the last, to its multiples");
    sizes("memory_buckets", &s.memory_buckets, "memory is rounded up to these, in MB").in("MB");
    sizes("disk_buckets", &s.disk_buckets, "disk is rounded up to these, in kB").in("kB");
    list("job_volumes", &s.job_volumes, "volume claims that RequestDiskVolumes may name");
    list("job_volume_folders", &s.job_volume_folders, "folders at or below which they may be mounted")
        .from("0.2.0");
    list("job_labels", &s.job_labels, "node labels that RequestLabels may name");
    integer("ramp_up_per_group", &s.ramp_up_per_group, 0, "curb: new pods in a cycle, a group; 0: no curb");
    integer("ramp_up", &s.ramp_up, 0, "curb: new pods in a cycle, in all; 0: no curb");
    integer("max_idle_per_group", &s.max_idle_per_group, 0,
            "curb: waiting and unmatched pods, a group; 0: no curb");
    integer("max_idle", &s.max_idle, 0, "curb: waiting and unmatched pods, in all; 0: no curb");
    integer("max_running_per_group", &s.max_running_per_group, 0,
            "curb: pods that run or will, a group; 0: no curb");
    integer("max_running", &s.max_running, 0, "curb: pods that run or will, in all; 0: no curb");
    integer("max_pods_per_group", &s.max_pods_per_group, 0,
            "cap: pods that have not ended, a group; 0: no cap");
    integer("max_pods", &s.max_pods, 0, "cap: pods that have not ended, in all; 0: no cap");
    integer("max_cores", &s.max_cores, 0, "cap: cores of pods that have not ended, in all; 0: no cap")
        .from("0.2.0");
    integer("max_pods_per_owner", &s.max_pods_per_owner, 0, "cap: pods for one job owner; 0: no cap");
    flag("waste_feedback", &s.waste_feedback, "pilots that ended without a job lower the number of new pods");
    seconds("waste_window", &s.waste_window, "how long a pilot that ended without a job counts");
    flag("count_free_capacity", &s.count_free_capacity,
         "idle jobs that fit into what running pods have left ask for no new ones")
        .from("0.2.0");
    seconds("free_capacity_limit", &s.free_capacity_limit,
            "after so long such jobs ask for pods all the same, until one is made for them or waits")
        .from("0.2.0");
    integer("breaker_failures", &s.breaker_failures, 0,
            "failed pilots of a group and image after which its breaker opens");
    seconds("breaker_window", &s.breaker_window, "how long a failed pilot counts");
    seconds("breaker_first_pause", &s.breaker_first_pause, "time to the first canary pod");
    seconds("breaker_longest_pause", &s.breaker_longest_pause, "the pause doubles up to this");
    integer("node_failures", &s.node_failures, 0,
            "a node where so many pilots failed in a row is avoided for such pauses; 0: never")
        .from("0.2.0");
    integer("nodes_avoided", &s.nodes_avoided, 0, "most nodes avoided at a time").from("0.2.0");
    seconds(
        "pull_limit", &s.pull_limit,
        "an image pull that takes longer has failed; after twice that without an image the pod is removed");
    seconds(
        "register_limit", &s.register_limit,
        "a pilot that takes longer to join has failed; one that cannot start is removed after twice that");
    seconds("take_back_after", &s.take_back_after,
            "pods without a node, and more than wanted for so long, are removed; 0: never")
        .from("0.2.0");
    seconds("outage_shift", &s.outage_shift,
            "when a place has not been seen for so long, others get pods for those that wait there")
        .from("0.2.0");
    seconds("unschedulable_limit", &s.unschedulable_limit,
            "a group whose pods got no node for so long asks for one pod; 0: never")
        .from("0.2.0");
    integer("finished_kept", &s.finished_kept, 0, "most finished pods to keep");
    integer("failed_kept", &s.failed_kept, 0, "failed pods that are kept whatever their age");
    text("status_file", &s.status_file, "where a running provisioner writes its last cycle; empty: nowhere");
    flag("hide_owners", &s.hide_owners, "status file, page and /status.json have pseudonyms of owners")
        .from("0.2.0");
    text("owner_key_file", &s.owner_key_file,
         "file with a secret of 16 bytes or more that pseudonyms are made from; empty: others after each "
         "start")
        .from("0.2.0");
  }

  Config& config_;
};

}  // namespace

bool of_all_places(std::string_view key) {
  constexpr std::string_view k_keys[] = {"app_name",
                                         "additional_requirements",
                                         "force_k8s_namespace_matching",
                                         "k8s_job_ttl",
                                         "pod_template",
                                         "gpu_jobs_only",
                                         "least_fill"};
  return std::ranges::find(k_keys, key) != std::end(k_keys);
}

void add_keys(Config& config, Settings& settings) {
  Table(config).add_all(settings);
}

void add_place_keys(Config& config, const std::string& section, KubernetesSettings& settings) {
  Table(config).add_place(section, settings);
}

void add_own_place_keys(Config& config, KubernetesSettings& settings) {
  Table(config).add_own_of_place(settings);
}

}  // namespace glidepod::provisioner
