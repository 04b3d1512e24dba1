#include "provisioner/settings/settings.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/pattern/pattern.hpp"

namespace glidepod::provisioner {

namespace {

struct Key {
  std::string section, name, default_text, help;
  std::function<Result<void>(const std::string&)> set;
};

// All keys with their places in one Settings; the only list of them.
class Table {
 public:
  explicit Table(Settings& settings) {
    seconds("default", "sleep_time", &settings.sleep_time, "pause between two cycles");
    add_htcondor(settings.htcondor);
    add_kubernetes(settings.kubernetes);
    add_lancium(settings.lancium);
    add_policy(settings.policy);
  }
  // The keys of [k8s:NAME].
  explicit Table(KubernetesSettings& place) {
    const auto inherited = place;
    add_kubernetes(place);
    place = inherited;
    std::erase_if(keys_, [](const Key& key) { return of_all_places(key.name); });
    const char* k = "k8s";
    text(k, "server", &place.server, "the cluster's API, https://HOST:PORT; empty: the provisioner's own");
    text(k, "token_file", &place.token_file, "file with the token for it; empty: the provisioner's own");
    text(k, "ca_file", &place.ca_file, "file with the certificates that its server has to be signed by");
    integer(k, "weight", &place.weight, 0,
            "share of the pods beside the other places; 0: only what they do not take", 1000);
    integer(k, "max_pods", &place.max_pods, 0, "cap: pods in this place that have not ended; 0: none");
  }
  const std::vector<Key>& keys() const { return keys_; }

  // Keys of [k8s] that are about jobs and pods wherever they are.
  static bool of_all_places(std::string_view key) {
    constexpr std::string_view k_keys[] = {"app_name",
                                           "additional_requirements",
                                           "force_k8s_namespace_matching",
                                           "k8s_job_ttl",
                                           "pod_template",
                                           "gpu_jobs_only",
                                           "least_fill"};
    return std::ranges::find(k_keys, key) != std::end(k_keys);
  }

 private:
  using Setter = std::function<Result<void>(const std::string&)>;
  void add(std::string section, std::string name, std::string default_text, std::string help, Setter set) {
    keys_.push_back(
        {std::move(section), std::move(name), std::move(default_text), std::move(help), std::move(set)});
  }

  void text(const char* section, const char* name, std::string* target, const char* help) {
    add(section, name, *target, help, [target](const std::string& value) -> Result<void> {
      *target = value;
      return {};
    });
  }
  void integer(const char* section, const char* name, std::int64_t* target, std::int64_t least,
               const char* help, std::int64_t most = 1'000'000'000) {
    add(section, name, std::to_string(*target), help, [=](const std::string& value) -> Result<void> {
      const auto number = parse_integer(value);
      if (!number || number.value() < least || number.value() > most)
        return error("must be a whole number from {} to {}", least, most);
      *target = number.value();
      return {};
    });
  }
  void seconds(const char* section, const char* name, Seconds* target, const char* help) {
    add(section, name, std::to_string(target->count()), help,
        [target](const std::string& value) -> Result<void> {
          const auto number = parse_integer(value);
          if (!number || number.value() < 0 || number.value() > 1'000'000'000)
            return error("must be a whole number of seconds");
          *target = Seconds(number.value());
          return {};
        });
  }
  void yes_or_no(const char* section, const char* name, bool* target, const char* help) {
    add(section, name, *target ? "yes" : "no", help, [target](const std::string& value) -> Result<void> {
      if (value != "yes" && value != "no") return error("must be one of: yes, no");
      *target = value == "yes";
      return {};
    });
  }
  void choice(const char* section, const char* name, std::string* target, const List& words,
              const char* help) {
    add(section, name, *target, help, [=](const std::string& value) -> Result<void> {
      if (std::find(words.begin(), words.end(), value) == words.end())
        return error("must be one of: {}", fmt::join(words, ", "));
      *target = value;
      return {};
    });
  }
  void regexp(const char* section, const char* name, std::string* target, const char* help) {
    add(section, name, *target, help, [target](const std::string& value) -> Result<void> {
      const auto pattern = Pattern::compile(value);
      if (!pattern) return error("must be a regular expression: {}", pattern.error().message());
      *target = value;
      return {};
    });
  }
  void list(const char* section, const char* name, List* target, const char* help) {
    add(section, name, fmt::format("{}", fmt::join(*target, ",")), help,
        [target](const std::string& value) -> Result<void> {
          *target = TRY(parse_list(value));
          return {};
        });
  }
  void dict(const char* section, const char* name, Dict* target, const char* help) {
    add(section, name, "", help, [target](const std::string& value) -> Result<void> {
      *target = TRY(parse_dict(value));
      return {};
    });
  }
  void sizes(const char* name, List* target, const char* help) {
    add("glidepod", name, "", help, [target](const std::string& value) -> Result<void> {
      *target = TRY(parse_list(value));
      std::int64_t last = 0;
      for (const auto& part : *target) {
        const auto size = parse_integer(part);
        if (!size || size.value() <= last) return error("must be rising whole numbers such as 4096,8192");
        last = size.value();
      }
      return {};
    });
  }

  void add_htcondor(HtcondorSettings& s) {
    const char* h = "htcondor";
    regexp(h, "schedd_whitelist_regexp", &s.schedd_whitelist_regexp, "names of the schedds whose jobs count");
    regexp(h, "schedd_identity_regexp", &s.schedd_identity_regexp,
           "what such a schedd must be authenticated as");
    regexp(h, "startd_identity_regexp", &s.startd_identity_regexp, "what a pilot must be authenticated as");
    text(h, "additional_requirements", &s.additional_requirements,
         "ClassAd expression over the job; others do not count");
    text(h, "pool", &s.pool, "collector to ask; empty: this machine's HTCondor configuration");
    seconds(h, "schedd_time_limit", &s.schedd_time_limit, "longest wait for one answer");
    integer(h, "parallel_queries", &s.parallel_queries, 1, "schedds asked at the same time");
    integer(h, "lookahead", &s.lookahead, 0, "most unmaterialised jobs of a cluster that count");
    choice(
        h, "demand", &s.demand, {"query", "offline", "both"},
        "idle jobs count; offline: pods that the negotiator would use, by offline ads; both: idle jobs, and "
        "plan shows the other beside");
    text(h, "force_k8s_namespace_matching", &s.force_namespace_matching,
         "no: jobs need not name the namespace in RequestK8SNamespace; pattern: it may be a pattern");
  }

  void add_pilot(const char* section, PilotSettings& s) {
    text(section, "app_name", &s.app_name, "this provisioner's name: in the names and labels of its pods");
    text(section, "condor_host", &s.condor_host, "CONDOR_HOST of the pilots");
    text(section, "additional_requirements", &s.additional_requirements,
         "ADDITIONAL_REQUIREMENTS of the pilots");
    text(section, "priority_class", &s.priority_class, "priority class of the pods");
    text(section, "priority_class_cpu", &s.priority_class_cpu, "the same for pods without GPUs");
    text(section, "priority_class_gpu", &s.priority_class_gpu, "the same for pods with GPUs");
    dict(section, "labels_dict", &s.labels, "labels of the pods");
    dict(section, "envs_dict", &s.envs, "environment of the pilots");
    dict(section, "pvc_volumes_dict", &s.pvc_volumes,
         "volume claims and mount paths; ! read-only, # HostToContainer");
    integer(section, "max_pods_per_cluster", &s.max_pods_per_cluster, 0, "most waiting pods of a group");
    integer(section, "max_submit_pods_per_cluster", &s.max_submit_pods_per_cluster, 0,
            "a group with this many pods gets no more");
  }

  void add_kubernetes(KubernetesSettings& s) {
    const char* k = "k8s";
    s.app_name = "prp-wn";
    s.condor_host = "prp-cm-htcondor.htcondor-portal.svc.cluster.local";
    add_pilot(k, s);
    text(k, "namespace", &s.name_space, "namespace of the pods; empty: the provisioner's own");
    text(k, "k8s_domain", &s.domain, "K8S_DOMAIN of the pilots");
    text(k, "force_k8s_namespace_matching", &s.force_namespace_matching,
         "FORCE_K8SNAMESPACE_MATCHING of the pilots; no and pattern as in [htcondor]");
    text(k, "k8s_image", &s.image, "the pilot image; default: the template's, else sfiligoi/prp-portal-wn");
    choice(k, "k8s_image_pull_policy", &s.image_pull_policy, {"Always", "IfNotPresent", "Never"},
           "when to pull it");
    text(k, "service_account_name", &s.service_account_name, "service account of the pods");
    seconds(k, "k8s_job_ttl", &s.job_ttl, "how long a finished pod is kept");
    add(k, "request_fuse", "", "request smarter-devices/fuse; default: yes without a template",
        [&s](const std::string& value) -> Result<void> {
          if (value != "yes" && value != "no") return error("must be one of: yes, no");
          s.request_fuse = value == "yes";
          return {};
        });
    yes_or_no(k, "use_large_limit", &s.use_large_limit,
              "request 75 % of CPUs and 80 % of memory, limit above both");
    add(k, "storage_mbs", std::to_string(s.storage_mbs),
        "least disk of a pod in MiB; empty: the job's request",
        [&s](const std::string& value) -> Result<void> {
          const auto number = parse_integer(value);
          if (!value.empty() && (!number || number.value() < 0 || number.value() > 1'000'000'000))
            return error("must be a whole number from 0 to 1000000000, or empty");
          s.storage_mbs = value.empty() ? -1 : number.value();
          return {};
        });
    dict(k, "resources_dict", &s.resources, "further resources of a pod, as request and limit");
    dict(k, "annotations_dict", &s.annotations, "annotations of the pods");
    dict(k, "node_selectors_dict", &s.node_selectors, "node labels a pod needs");
    dict(k, "node_affinity_dict", &s.node_affinity, "node labels and values a|b; ^key: none of them");
    dict(k, "config_volumes_dict", &s.config_volumes, "config maps and the file each one is mounted as");
    list(k, "tolerations_list", &s.tolerations, "NoSchedule taints that are tolerated");
    text(k, "pod_template", &s.pod_template,
         "file with the pilot pod as JSON; empty: one container, as PRP's");
    add(k, "token_secret", "",
        "secret with prp-wn.token, the pool's token; empty: none; default: prp-htcondor-wn-secret without a "
        "template",
        [&s](const std::string& value) -> Result<void> {
          s.token_secret = value;
          return {};
        });
    text(k, "gpu_type_label", &s.gpu_type_label, "node label that RequestGPUTypes is about; empty: ignored");
    seconds(k, "pod_lifetime", &s.pod_lifetime, "activeDeadlineSeconds of a pod; 0: none");
    list(k, "image_pull_secrets", &s.image_pull_secrets, "secrets for pulling the pilot image");
    add(k, "default_image", "", "image of jobs that name none; empty: such jobs do not count",
        [&s](const std::string& value) -> Result<void> {
          const auto image = TRY(
              Pattern::compile("(docker://|/cvmfs/(singularity[.]opensciencegrid[.]org|unpacked[.]cern[.]ch)/"
                               ")[A-Za-z0-9][A-Za-z0-9._:@/-]*"));
          if (!value.empty() && !TRY(image.matches(value)))
            return error(
                "must be docker://NAME or a path below /cvmfs/singularity.opensciencegrid.org/ or "
                "/cvmfs/unpacked.cern.ch/, or empty");
          s.default_image = value;
          return {};
        });
    yes_or_no(k, "pilot_jobs", &s.pilot_jobs, "pilots take jobs that are pilots themselves");
    yes_or_no(k, "gpus_on_nodes", &s.gpus_on_nodes,
              "no: GPUs come by DRA, and nodes do not list them: how many a node has is not asked");
    yes_or_no(k, "gpu_jobs_only", &s.gpu_jobs_only, "pods with GPUs take only jobs that request GPUs");
    integer(k, "least_fill", &s.least_fill, 0,
            "free pods take only jobs that request so many percent of their CPUs or memory", 100);
    yes_or_no(k, "pullers", &s.pullers,
              "jobs' images that are not on a node are pulled by pods of their own");
    integer(k, "pullers_per_node", &s.pullers_per_node, 1, "most of these pods on a node");
    integer(k, "pullers_in_all", &s.pullers_in_all, 1, "most of them in all");
    integer(k, "pullers_per_minute", &s.pullers_per_minute, 1, "most of them made in a minute, a node");
    seconds(k, "puller_deadline", &s.puller_deadline, "how long one may take");
    yes_or_no(k, "born_ready", &s.born_ready,
              "payload containers of new pods, but the first, start on images that jobs want");
    list(k, "born_ready_from", &s.born_ready_from,
         "registries or paths that these may come from; empty: all");
    yes_or_no(k, "pod_events", &s.pod_events, "what pilots do is told as Events of their pods");
  }

  void add_lancium(LanciumSettings& s) {
    const char* l = "lancium";
    s.app_name = "lancium-wn";
    s.condor_host = "localhost";
    s.max_submit_pods_per_cluster = 400;
    add_pilot(l, s);
    text(l, "lancium_image", &s.image, "the pilot image");
    seconds(l, "lancium_job_ttl", &s.job_ttl,
            "accepted for PRP's files; finished jobs go after ten sightings");
    text(l, "lcli", &s.lcli, "Lancium's command line program");
    seconds(l, "call_time_limit", &s.call_time_limit, "longest wait for one lcli command");
    add(l, "shapes", fmt::format("{}", fmt::join(s.shapes, ",")), "sizes that can be had, as cores/GPUs",
        [&s](const std::string& value) -> Result<void> {
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
    integer(l, "megabytes_per_core", &s.megabytes_per_core, 1, "memory of a shape");
    text(l, "gpu_model", &s.gpu_model, "--gpu of shapes with GPUs");
    text(l, "token_file", &s.token_file, "the pool's token as an input file; empty: none");
    text(l, "startup_command", &s.startup_command, "what the pilot image starts; its environment follows");
    integer(l, "sightings_before_removal", &s.sightings_before_removal, 1, "finished jobs are deleted after");
    integer(l, "removals_per_cycle", &s.removals_per_cycle, 0, "most deletions in one cycle");
  }

  void add_policy(PolicySettings& s) {
    const char* g = "glidepod";
    sizes("cpu_buckets", &s.cpu_buckets, "CPUs are rounded up to these; above the last, to its multiples");
    sizes("memory_buckets", &s.memory_buckets, "the same for memory, in MB");
    sizes("disk_buckets", &s.disk_buckets, "the same for disk, in kB");
    list(g, "job_volumes", &s.job_volumes, "volume claims that RequestDiskVolumes may name");
    list(g, "job_volume_folders", &s.job_volume_folders, "folders at or below which they may be mounted");
    list(g, "job_labels", &s.job_labels, "node labels that RequestLabels may name");
    integer(g, "ramp_up_per_group", &s.ramp_up_per_group, 0, "curb: new pods in a cycle, a group");
    integer(g, "ramp_up", &s.ramp_up, 0, "curb: new pods in a cycle, in all");
    integer(g, "max_idle_per_group", &s.max_idle_per_group, 0, "curb: waiting and unmatched pods, a group");
    integer(g, "max_idle", &s.max_idle, 0, "curb: waiting and unmatched pods, in all");
    integer(g, "max_running_per_group", &s.max_running_per_group, 0, "curb: pods that run or will, a group");
    integer(g, "max_running", &s.max_running, 0, "curb: pods that run or will, in all");
    integer(g, "max_pods_per_group", &s.max_pods_per_group, 0, "cap: pods that have not ended, a group");
    integer(g, "max_pods", &s.max_pods, 0, "cap: pods that have not ended, in all");
    integer(g, "max_pods_per_owner", &s.max_pods_per_owner, 0, "cap: pods for one job owner");
    yes_or_no(g, "waste_feedback", &s.waste_feedback, "pilots that ended without a job lower the pressure");
    seconds(g, "waste_window", &s.waste_window, "how long such a pilot counts");
    yes_or_no(g, "count_free_capacity", &s.count_free_capacity,
              "idle jobs that fit into what running pods have left ask for no new ones");
    seconds(g, "free_capacity_limit", &s.free_capacity_limit,
            "they do again when they have waited for so long, until a pod is made for them or waits");
    integer(g, "breaker_failures", &s.breaker_failures, 0, "failed pilots of a group and image that stop it");
    seconds(g, "breaker_window", &s.breaker_window, "how long a failed pilot counts");
    seconds(g, "breaker_first_pause", &s.breaker_first_pause, "time to the first canary pod");
    seconds(g, "breaker_longest_pause", &s.breaker_longest_pause, "the pause doubles up to this");
    integer(g, "node_failures", &s.node_failures, 0,
            "a node where so many pilots failed in a row is avoided for such pauses; 0: never");
    integer(g, "nodes_avoided", &s.nodes_avoided, 0, "most nodes avoided at a time");
    seconds(
        g, "pull_limit", &s.pull_limit,
        "an image pull that takes longer has failed; after twice that without an image the pod is removed");
    seconds(
        g, "register_limit", &s.register_limit,
        "a pilot that takes longer to join has failed; one that cannot start is removed after twice that");
    seconds(g, "take_back_after", &s.take_back_after,
            "pods without a node, and more than wanted for so long, are removed; 0: never");
    seconds(g, "outage_shift", &s.outage_shift,
            "when a place has not been seen for so long, others get pods for those that wait there");
    seconds(g, "unschedulable_limit", &s.unschedulable_limit,
            "a group none of whose pods got a node for so long is down to one; 0: never");
    integer(g, "finished_kept", &s.finished_kept, 0, "most finished pods to keep");
    integer(g, "failed_kept", &s.failed_kept, 0, "failed pods that are kept whatever their age");
    text(g, "status_file", &s.status_file,
         "where a running provisioner writes its last cycle; empty: nowhere");
    yes_or_no(g, "hide_owners", &s.hide_owners,
              "status file, page and /status.json have pseudonyms of owners");
    text(g, "owner_key_file", &s.owner_key_file,
         "file with a secret of 16 bytes or more that they depend on; empty: others after each start");
  }

  std::vector<Key> keys_;
};

List unknown_keys(const Ini& ini, const std::vector<Key>& known) {
  std::set<std::string> sections, anywhere;
  std::set<std::pair<std::string, std::string>> exact;
  for (const auto& key : known) {
    sections.insert(key.section);
    anywhere.insert(key.name);
    exact.emplace(key.section, key.name);
  }
  List result;
  for (const auto& [section, keys] : ini.keys()) {
    if (!sections.contains(section)) {
      result.push_back(fmt::format("unknown section [{}] is ignored", section));
      continue;
    }
    for (const auto& key : keys) {
      // What stands in [DEFAULT] is seen by every section.
      if (section == "default" ? anywhere.contains(key) : exact.contains({section, key})) continue;
      result.push_back(fmt::format("unknown key '{}' in [{}] is ignored", key, section));
    }
  }
  return result;
}

// What counts in place of a key that is accepted for PRP's files; nullptr where the key itself does.
const char* used_instead(std::string_view section, std::string_view key) {
  if (section == "lancium" && key == "lancium_job_ttl") return "sightings_before_removal is";
  if (section != "htcondor") return nullptr;
  if (key == "condor_host") return "pool is";
  const bool of_backend = key == "namespace" || key == "app_name" || key == "k8s_domain";
  return of_backend ? "that of [k8s] is" : nullptr;
}

// Each [k8s:NAME]: what [k8s] says, and above it what it says itself. keys: told what may stand there.
Result<void> read_places(const Ini& ini, LoadedSettings& loaded, std::vector<Key>& keys) {
  constexpr std::string_view k_prefix = "k8s:";
  for (const auto& [section, names] : ini.keys()) {
    if (!section.starts_with(k_prefix)) continue;
    auto place = loaded.settings.kubernetes;
    place.place = section.substr(k_prefix.size());
    const bool good =
        !place.place.empty() && place.place.size() <= 30 && place.place.front() != '-' &&
        place.place.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    if (!good) return error("[{}]: a place's name is up to 30 of a-z, 0-9 and -", section);
    const Table table(place);
    for (auto key : table.keys()) {
      if (std::ranges::find(names, key.name) != names.end()) {
        const auto value = TRY(ini.get(section, key.name)).value_or("");
        if (const auto set = key.set(value); !set)
          return error("[{}] {} = '{}': {}", section, key.name, one_line(value, 200), set.error().message());
      }
      key.section = section;
      keys.push_back(std::move(key));
    }
    for (const auto& name : names)
      if (Table::of_all_places(name)) {
        loaded.warnings.push_back({fmt::format("'{}' in [{}] is not used: that of [k8s] is", name, section)});
        keys.push_back({section, name, "", "", {}});
      }
    loaded.settings.places.push_back(std::move(place));
  }
  return {};
}

}  // namespace

Result<LoadedSettings> parse_settings(const Ini& ini) {
  LoadedSettings loaded;
  const Table table(loaded.settings);
  for (const auto& key : table.keys()) {
    const auto value = TRY(ini.get(key.section, key.name));
    if (!value) continue;
    if (const auto set = key.set(*value); !set)
      return error("[{}] {} = '{}': {}", key.section, key.name, one_line(*value, 200), set.error().message());
  }
  for (const auto& [section, keys] : ini.keys())
    for (const auto& key : keys) {
      auto value = TRY(ini.get(section, key)).value_or("");
      // The environment may hold secrets: a change is told, the values are not.
      if (key == "envs_dict") value = fmt::format("(hidden, {:x})", std::hash<std::string>()(value));
      loaded.written.push_back(fmt::format("[{}] {} = {}", section, key, value));
    }
  std::vector<Key> of_places;
  TRY(read_places(ini, loaded, of_places));
  // The other keys that [htcondor] shares with the backends have no meaning of their own there.
  auto known = table.keys();
  known.insert(known.end(), of_places.begin(), of_places.end());
  for (const char* name : {"namespace", "condor_host", "app_name", "k8s_domain"})
    known.push_back({"htcondor", name, "", "", {}});
  std::sort(loaded.written.begin(), loaded.written.end());
  for (auto& text : unknown_keys(ini, known)) loaded.warnings.push_back({std::move(text)});
  for (const auto& [section, keys] : ini.keys())
    for (const auto& key : keys)
      // PRP's files say the same in both places.
      if (const auto* instead = used_instead(section, key);
          instead && TRY(ini.get(section, key)) != TRY(ini.get("k8s", key)))
        loaded.warnings.push_back({fmt::format("'{}' in [{}] is not used: {}", key, section, instead)});
  return loaded;
}

Result<LoadedSettings> load_settings(const List& files) {
  Ini ini;
  for (const auto& file : files) TRY(ini.read(TRY(read_file(file, std::size_t{1} << 20)), file));
  return parse_settings(ini);
}

List changes(const LoadedSettings& before, const LoadedSettings& after) {
  List result;
  const auto add = [&result](char sign, const List& from, const List& without) {
    List only;
    std::set_difference(from.begin(), from.end(), without.begin(), without.end(), std::back_inserter(only));
    for (const auto& line : only) result.push_back(fmt::format("{} {}", sign, line));
  };
  add('-', before.written, after.written);
  add('+', after.written, before.written);
  return result;
}

std::string describe_settings() {
  Settings settings;
  const Table table(settings);
  std::string result, section;
  for (const auto& key : table.keys()) {
    if (key.section != section)
      result += fmt::format("[{}]\n", key.section == "default" ? "DEFAULT" : key.section);
    section = key.section;
    result += fmt::format("  {:<30} {} [{}]\n", key.name, key.help, key.default_text);
  }
  result +=
      "[k8s:NAME], a cluster or namespace beside others: the keys of [k8s], from where it has them else, "
      "and\n";
  KubernetesSettings place;
  const Table all(settings), own(place);
  for (const auto& key : own.keys()) {
    const auto in_k8s = [&key](const Key& other) { return other.section == "k8s" && other.name == key.name; };
    if (std::ranges::none_of(all.keys(), in_k8s))
      result += fmt::format("  {:<30} {} [{}]\n", key.name, key.help, key.default_text);
  }
  return result;
}

}  // namespace glidepod::provisioner
