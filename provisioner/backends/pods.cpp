#include "provisioner/backends/pods.hpp"

#include <algorithm>
#include <utility>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/kube/pod.hpp"
#include "provisioner/backends/pod_nodes.hpp"
#include "provisioner/backends/pod_volumes.hpp"
#include "provisioner/backends/spare_containers.hpp"

namespace glidepod::provisioner {

namespace {

constexpr const char* k_default_image = "sfiligoi/prp-portal-wn";
constexpr const char* k_group_label = "glidepod.io/group";
constexpr const char* k_gpus = "nvidia.com/gpu";
constexpr const char* k_visible_devices = "NVIDIA_VISIBLE_DEVICES";
constexpr const char* k_image_store = "GLIDEPOD_IMAGE_STORE";

// Adds or replaces the element with this name.
void set_named(Json& list, Json element) {
  if (!list.is_array()) list = Json::array();
  for (auto& other : list)
    if (other.value("name", "") == element["name"]) {
      other = std::move(element);
      return;
    }
  list.push_back(std::move(element));
}

void add_all(Json& object, const Dict& entries) {
  for (const auto& [key, value] : entries) object[key] = value;
}

std::string cpus(std::int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : fmt::format("{}m", milli);
}

// A template from outside: only what is walked through here must have the right shape, the API checks the
// rest.
Result<void> check_template(const Json& pod) {
  if (!pod.is_object() || pod.value("kind", Json()) != "Pod") return error("is no Pod");
  const auto spec = pod.find("spec");
  if (spec == pod.end() || !spec->is_object()) return error("has no spec");
  const auto containers = spec->find("containers");
  if (containers == spec->end() || !containers->is_array() || containers->empty())
    return error("has no containers");
  for (const auto* lists : {"containers", "initContainers"})
    for (const auto& container : spec->value(lists, Json::array()))
      if (!container.is_object() || !container.value("name", Json()).is_string())
        return error("has a container without a name");
  return {};
}

// The error of a template that an API server would refuse too.
Error of_another_type(const Json::exception& problem) {
  return error("pod template: a field is of another type than in a pod ({})", problem.what());
}

// The template with the first of its payload containers only.
Json with_one_payload(Json pod) {
  auto& containers = pod["spec"]["containers"];
  Json kept = Json::array();
  bool found = false;
  for (auto& container : containers) {
    const bool payload = container["name"].get<std::string>().starts_with("payload-");
    if (!payload || !std::exchange(found, true))
      kept.push_back(std::move(container));
    else
      drop_own_shm(pod["spec"], container);
  }
  containers = std::move(kept);
  return pod;
}

// Payload containers become init containers that run beside the others, after those that end.
void make_sidecars(Json& spec) {
  auto& first = spec["initContainers"];
  if (!first.is_array()) first = Json::array();
  Json kept = Json::array();
  for (auto& container : spec["containers"]) {
    const bool payload = container["name"].get<std::string>().starts_with("payload-");
    if (payload) container["restartPolicy"] = "Always";
    (payload ? first : kept).push_back(std::move(container));
  }
  spec["containers"] = std::move(kept);
}

}  // namespace

Result<PodMaker> PodMaker::create(KubernetesSettings settings, const Json* pod_template) try {
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"spec", {{"restartPolicy", "Never"}, {"containers", {{{"name", "htcondor"}}}}}}};
  if (settings.image_store.empty() != settings.image_store_repository.empty())
    return error("image_store and image_store_repository are given together, or neither");
  // Such a container would keep the pilot from starting while its image is pulled.
  if (settings.layout == Layout::sidecars && settings.born_ready)
    return error("born_ready and layout=sidecars exclude each other");
  if (pod_template) {
    TRY(check_template(*pod_template).in("pod template"));
    pod = *pod_template;
  }
  PodMaker maker(std::move(settings), std::move(pod), pod_template != nullptr);
  const auto& containers = maker.template_["spec"]["containers"];
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string name = containers[i]["name"];
    if (name == kube::k_pilot_container) maker.pilot_ = i;
    if (name.starts_with("payload-")) ++maker.payloads_;
  }
  maker.image_ = maker.settings_.image;
  if (maker.image_.empty()) maker.image_ = containers[maker.pilot_].value("image", k_default_image);
  maker.no_spares_ = maker.why_no_spares();
  if (maker.payloads_ > 1) {
    const Json one = with_one_payload(maker.template_);
    maker.with_one_ = std::make_shared<const PodMaker>(TRY(create(maker.settings_, &one)));
  }
  return maker;
} catch (const Json::exception& problem) {
  return of_another_type(problem);
}

namespace {

// By a device plugin or by DRA. smarter-devices gives plain device nodes, such as /dev/fuse.
bool has_device(const Json& container) {
  const auto& resources = member(container, "resources");
  if (!member(resources, "claims").empty()) return true;
  const auto& limits = member(resources, "limits");
  if (!limits.is_object()) return false;
  for (const auto& [name, quantity] : limits.items())
    if (name.find('/') != std::string::npos && !name.starts_with("smarter-devices/")) return true;
  return false;
}

}  // namespace

// Where NVIDIA's runtime is a node's default, an image's own NVIDIA_VISIBLE_DEVICES=all opens all GPUs of the
// node to a container that was given none. What the template says itself stays, and where a device was given
// its plugin's word.
void PodMaker::close_devices(Json& pod) const {
  for (auto* container : payloads_of(pod)) {
    if (has_device(*container)) continue;
    auto& env = (*container)["env"];
    const bool told = env.is_array() && std::ranges::any_of(env, [](const Json& one) {
                        return text_of(one, "name") == k_visible_devices;
                      });
    if (!told) set_named(env, {{"name", k_visible_devices}, {"value", "void"}});
  }
}

namespace {
// What it may use it requests. Where it has no limit, what it requests is one.
void guarantee(Json& container) {
  auto& resources = container["resources"];
  auto& limits = resources["limits"];
  for (const auto& [name, quantity] : member(resources, "requests").items()) limits.emplace(name, quantity);
  resources["requests"] = limits;
}
}  // namespace

Result<Json> PodMaker::make(const Group& group, const std::string& name) const try {
  const bool guaranteed = settings_.qos_class == QosClass::guaranteed;
  if ((group.gpus > 0 || guaranteed) && with_one_) return with_one_->make(group, name);
  auto pod = template_;
  add_spares(pod, spares(group));
  set_metadata(pod, group);
  set_images(pod);
  set_environment(pod, group);
  TRY(set_resources(pod, group));
  if (guaranteed)
    for (const auto* lists : {"initContainers", "containers"})
      if (const auto all = pod["spec"].find(lists); all != pod["spec"].end())
        for (auto& container : *all) guarantee(container);
  close_devices(pod);
  set_placement(pod, group);
  TRY(set_volumes(pod, group));
  if (settings_.layout == Layout::sidecars && has_payloads()) make_sidecars(pod["spec"]);
  // The hash of all but the pod's name: by it pods are told that wait and would now be made otherwise.
  auto& metadata = pod["metadata"];
  metadata["annotations"][k_made_as] = fmt::format("{:016x}", stable_hash(json_text(pod)));
  metadata["name"] = name;
  return pod;
} catch (const Json::exception& problem) {
  return of_another_type(problem);
}

void PodMaker::set_metadata(Json& pod, const Group& group) const {
  auto& metadata = pod["metadata"];
  metadata["namespace"] = settings_.name_space;
  metadata.erase("name");
  metadata.erase("generateName");
  auto& labels = metadata["labels"];
  add_all(labels, settings_.labels);
  // After the configured ones: with other values the pods would not be found again.
  labels["k8s-app"] = settings_.app_name;
  labels["prp-htcondor-portal"] = "wn";
  labels["PodCPUs"] = std::to_string(group.cpus);
  labels["PodGPUs"] = std::to_string(group.gpus);
  labels["PodMemory"] = std::to_string(group.memory_mb);
  labels["PodDisk"] = std::to_string(group.disk_kb);
  labels[k_group_label] = group.hash();
  Dict annotations = settings_.annotations;
  for (const auto& text : k_group_texts)
    if (!(group.*text.field).empty()) annotations.emplace_back(text.annotation, (group.*text.field).str());
  if (!annotations.empty()) add_all(metadata["annotations"], annotations);
}

void PodMaker::set_images(Json& pod) const {
  auto& spec = pod["spec"];
  const auto before = pilot(pod).value("image", Json());
  // Containers that had the pilot's image, such as the one that installs glue and the idle payloads, stay
  // with it.
  for (const auto* lists : {"initContainers", "containers"}) {
    if (!spec.contains(lists)) continue;
    for (auto& container : spec[lists])
      if (!before.is_null() && container.value("image", Json()) == before) container["image"] = image_;
  }
  pilot(pod)["image"] = image_;
  if (settings_.image_pull_policy)
    pilot(pod)["imagePullPolicy"] = to_string(*settings_.image_pull_policy);
  else if (!from_template_)
    pilot(pod)["imagePullPolicy"] = "Always";
  for (const auto& secret : settings_.image_pull_secrets)
    set_named(spec["imagePullSecrets"], {{"name", secret}});
}

namespace {

// "payload-0 payload-1"
std::string payload_names(Json& pod) {
  std::string names;
  for (const auto* payload : payloads_of(pod))
    names += (names.empty() ? "" : " ") + (*payload)["name"].get<std::string>();
  return names;
}

// The logs of HTCondor and of the containers, at their longest, and what jobs leave outside of their folders.
constexpr std::int64_t k_own_disk_kib = 512000;

// PRP raises the disk of the pod, not what its pilots match jobs by. Our pilots offer jobs the group's disk
// in KiB and count it; the kubelet counts all that the pod has written, and evicts it for a byte too many.
std::string disk_of(const Group& group, const KubernetesSettings& settings, bool payloads) {
  const auto least = settings.storage_mbs * 1024;
  return fmt::format("{}Ki", std::max(group.disk_kb + (payloads ? k_own_disk_kib : 0), least));
}

}  // namespace

std::int64_t PodMaker::spares(const Group& group) const {
  // A device belongs to one container.
  if (payloads_ == 0 || group.gpus > 0 || !no_spares_.empty()) return 0;
  return settings_.warm ? *settings_.warm : auto_spares(payloads_, group.cpus);
}

std::string PodMaker::why_no_spares() const {
  if (payloads_ == 0 || settings_.warm == 0) return {};
  const auto own = [](const char* name) {
    return fmt::format("the pilots' environment says {}: spare containers are the pod template's", name);
  };
  if (const auto warm = pilot_variable("GLIDEPOD_WARM"); !warm.empty() && warm != "auto")
    return own("GLIDEPOD_WARM");
  if (!pilot_variable("GLIDEPOD_SPARES").empty())
    return own("GLIDEPOD_SPARES, the old name of GLIDEPOD_WARM");
  if (std::ranges::find(settings_.envs, "GLIDEPOD_PAYLOAD_CONTAINERS", &Dict::value_type::first) !=
      settings_.envs.end())
    return own("GLIDEPOD_PAYLOAD_CONTAINERS");
  if (settings_.qos_class == QosClass::guaranteed)
    return "qos_class=Guaranteed: pods have one payload container";
  if (!settings_.resources.empty() || settings_.request_fuse.value_or(false))
    return "the pods have devices (resources_dict, request_fuse), which belong to one container";
  // Kubernetes takes a pod as Guaranteed where each container may use what it requests, and a part of what
  // the payload containers request together is less.
  if (payloads_ == 1 && !settings_.use_large_limit && others_are_guaranteed(template_))
    return "no container may use more than it requests: one beside it would change that";
  return why_not_copied(template_);
}

// What its pilots' environment has by this name; empty: nothing.
std::string PodMaker::pilot_variable(std::string_view name) const {
  if (const auto set = std::ranges::find(settings_.envs, name, &Dict::value_type::first);
      set != settings_.envs.end())
    return set->second;
  if (name == k_image_store && !settings_.image_store.empty()) return settings_.image_store;
  const auto& environment = member(member(template_, "spec")["containers"][pilot_], "env");
  const auto found =
      std::ranges::find_if(environment, [&](const Json& each) { return text_view(each, "name") == name; });
  return found == environment.end() ? std::string() : text_of(*found, "value");
}

ImageFiles PodMaker::image_files() const {
  if (pilot_variable(k_image_store).empty()) return ImageFiles::refused;
  return pilot_variable("GLIDEPOD_CVMFS_IMAGES") == "true" ? ImageFiles::with_cvmfs : ImageFiles::taken;
}

void PodMaker::set_environment(Json& pod, const Group& group) const {
  const auto& s = settings_;
  Dict all = {{"K8S_PROVISIONER_TYPE", "PRPHTCondorProvisioner"},
              {"K8S_PROVISIONER_NAME", s.app_name},
              {"CONDOR_HOST", s.condor_host},
              {"STARTD_NOCLAIM_SHUTDOWN", "1200"},
              {"K8S_NAMESPACE", s.name_space},
              {"K8S_DOMAIN", s.domain},
              {"NUM_CPUS", std::to_string(group.cpus)},
              {"NUM_GPUS", std::to_string(group.gpus)},
              {"MEMORY", std::to_string(group.memory_mb)},
              {"DISK", std::to_string(group.disk_kb)}};
  if (has_payloads()) all.emplace_back("GLIDEPOD_PAYLOAD_CONTAINERS", payload_names(pod));
  if (s.pullers) all.emplace_back("GLIDEPOD_PULLERS", "true");
  if (!s.default_image.empty()) all.emplace_back("GLIDEPOD_DEFAULT_IMAGE", s.default_image);
  if (!s.image_store.empty()) {
    all.emplace_back(k_image_store, s.image_store);
    all.emplace_back("GLIDEPOD_IMAGE_STORE_REPOSITORY", s.image_store_repository);
    all.emplace_back("GLIDEPOD_IMAGE_STORE_CA", std::string(k_image_store_folder) + "/ca.crt");
  }
  if (s.pilot_jobs) all.emplace_back("GLIDEPOD_PILOT_JOBS", "true");
  if (!s.gpu_jobs_only) all.emplace_back("GLIDEPOD_GPU_JOBS_ONLY", "no");
  if (s.least_fill > 0) all.emplace_back("GLIDEPOD_LEAST_FILL", std::to_string(s.least_fill));
  if (has_payloads() && s.pod_lifetime > Seconds(0))
    all.emplace_back("GLIDEPOD_POD_LIFETIME", std::to_string(s.pod_lifetime.count()));
  if (!s.force_namespace_matching.empty())
    all.emplace_back("FORCE_K8SNAMESPACE_MATCHING", s.force_namespace_matching);
  if (!s.additional_requirements.empty())
    all.emplace_back("ADDITIONAL_REQUIREMENTS", s.additional_requirements);
  for (const auto& text : k_group_texts)
    if (!(group.*text.field).empty()) all.emplace_back(text.variable, (group.*text.field).str());
  all.insert(all.end(), s.envs.begin(), s.envs.end());
  if (const auto number = spares(group); number > 0)
    all.emplace_back("GLIDEPOD_WARM", std::to_string(number));
  auto& env = pilot(pod)["env"];
  for (const auto& [name, value] : all) set_named(env, {{"name", name}, {"value", value}});
  set_named(env,
            {{"name", "PHYSICAL_HOSTNAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}});
}

// Of the first kind; a pod cannot ask for one resource or another.
Result<std::string> PodMaker::gpu_resource(const Group& group) const {
  const auto of = [this](std::string_view kind) {
    const auto& all = settings_.gpu_resources;
    for (const auto name : {kind, std::string_view("*")})
      if (const auto found = std::ranges::find(all, name, &Dict::value_type::first); found != all.end())
        return found->second;
    return std::string(k_gpus);
  };
  const auto kinds = split(group.gpu_types, ',');
  const auto first = of(kinds.empty() ? "" : kinds.front());
  for (const auto& kind : kinds)
    if (const auto other = of(kind); other != first)
      return error("RequestGPUTypes names kinds of different resources: {} is {}, {} is {} (gpu_resources)",
                   kinds.front(), first, kind, other);
  return first;
}

Result<void> PodMaker::set_resources(Json& pod, const Group& group) const {
  const auto& s = settings_;
  // The same numbers as PRP's: with the large limit it asks for less than the job may use.
  const bool large_limit = s.use_large_limit && s.qos_class == QosClass::burstable;
  const auto request_memory = large_limit ? group.memory_mb * 8 / 10 : group.memory_mb + 1000;
  const auto request_cpus = large_limit ? group.cpus * 750 : group.cpus * 1000;
  const auto limit_cpus = large_limit ? group.cpus * 1000 + 250 : group.cpus * 1000;

  // Jobs run in the payload containers: what they need is shared out, and each may use all of it.
  auto takers = payloads_of(pod);
  if (takers.empty()) takers.push_back(&pilot(pod));
  const auto count = static_cast<std::int64_t>(takers.size());
  for (std::size_t i = 0; i < takers.size(); ++i) {
    const auto share = [&](std::int64_t whole) { return whole / count + (i == 0 ? whole % count : 0); };
    auto& resources = (*takers[i])["resources"];
    resources["requests"]["memory"] = fmt::format("{}Mi", share(request_memory));
    resources["requests"]["cpu"] = cpus(share(request_cpus));
    resources["limits"]["memory"] = fmt::format("{}Mi", group.memory_mb + 1000);
    resources["limits"]["cpu"] = cpus(limit_cpus);
    if (i > 0) {
      for (const auto* whose : {"requests", "limits"}) resources[whose].erase("ephemeral-storage");
      continue;
    }
    // Devices and the like belong to one container, and disk is counted over the whole pod.
    Dict whole = {{"ephemeral-storage", disk_of(group, s, has_payloads())}};
    if (group.gpus > 0) whole.emplace_back(TRY(gpu_resource(group)), std::to_string(group.gpus));
    if (s.request_fuse.value_or(!from_template_)) whole.emplace_back("smarter-devices/fuse", "1");
    whole.insert(whole.end(), s.resources.begin(), s.resources.end());
    add_all(resources["requests"], whole);
    add_all(resources["limits"], whole);
  }
  if (!has_payloads()) return {};
  // What the pilot may share out among them later.
  auto& annotations = pod["metadata"]["annotations"];
  const auto say = [&annotations](const char* name, std::string quantity) {
    annotations[std::string(kube::k_payload_size) + name] = std::move(quantity);
  };
  say("requests.cpu", cpus(request_cpus));
  say("requests.memory", fmt::format("{}Mi", request_memory));
  say("limits.cpu", cpus(limit_cpus * count));
  say("limits.memory", fmt::format("{}Mi", (group.memory_mb + 1000) * count));
  return {};
}

const std::string& PodMaker::priority_class(bool gpus) const {
  const auto& special = gpus ? settings_.priority_class_gpu : settings_.priority_class_cpu;
  return special.empty() ? settings_.priority_class : special;
}

std::set<std::string> PodMaker::priority_classes() const {
  std::set<std::string> result;
  for (const bool gpus : {false, true}) {
    const auto& set = priority_class(gpus);
    result.insert(set.empty() ? text_of(member(template_, "spec"), "priorityClassName") : set);
  }
  return result;
}

std::set<std::string> PodMaker::devices() const {
  std::set<std::string> result;
  for (const auto& [kind, resource] : settings_.gpu_resources)
    if (resource != k_gpus) result.insert(resource);
  return result;
}

void PodMaker::set_placement(Json& pod, const Group& group) const {
  const auto& s = settings_;
  auto& spec = pod["spec"];
  const auto& priority = priority_class(group.gpus > 0);
  if (!priority.empty()) spec["priorityClassName"] = priority;
  if (!s.service_account_name.empty()) spec["serviceAccountName"] = s.service_account_name;
  if (s.pod_lifetime > Seconds(0)) spec["activeDeadlineSeconds"] = s.pod_lifetime.count();
  for (const auto& taint : s.tolerations)
    spec["tolerations"].push_back({{"effect", "NoSchedule"}, {"key", taint}, {"operator", "Exists"}});

  Dict selectors = s.node_selectors;
  if (!group.labels.empty())
    for (const auto& pair : split(group.labels, ','))
      selectors.emplace_back(pair.substr(0, pair.find(':')), pair.substr(pair.find(':') + 1));
  if (!selectors.empty()) add_all(spec["nodeSelector"], selectors);

  auto expressions = Json::array();
  for (const auto& [key, value] : s.node_affinity) {
    const bool none_of = key.starts_with('^');
    expressions.push_back({{"key", none_of ? key.substr(1) : key},
                           {"operator", none_of ? "NotIn" : "In"},
                           {"values", split(trim(value), '|')}});
  }
  // Kinds with a resource of their own need no label.
  const auto resource = gpu_resource(group);
  if (!group.gpu_types.empty() && !s.gpu_type_label.empty() && resource && *resource == k_gpus)
    expressions.push_back(
        {{"key", s.gpu_type_label}, {"operator", "In"}, {"values", split(group.gpu_types, ',')}});
  // A term without expressions, which PRP sends, would match no node.
  require_of_node(pod, expressions);
}

Result<void> PodMaker::set_volumes(Json& pod, const Group& group) const {
  std::vector<PodVolume> volumes;
  for (const auto& [claim, path] : settings_.pvc_volumes) volumes.push_back(claim_volume(claim, path));
  if (!group.disk_volumes.empty())
    for (const auto& pair : split(group.disk_volumes, ','))
      volumes.push_back(claim_volume(pair.substr(0, pair.find(':')), pair.substr(pair.find(':') + 1)));
  for (const auto& [config, path] : settings_.config_volumes) volumes.push_back(config_volume(config, path));
  const auto token = settings_.token_secret.value_or(from_template_ ? "" : "prp-htcondor-wn-secret");
  if (!token.empty()) volumes.push_back(token_volume(token));
  if (!settings_.image_store.empty()) volumes.push_back(image_store_volume());

  auto& spec = pod["spec"];
  for (auto& volume : volumes) {
    auto& all = spec["volumes"];
    if (!all.is_array()) all = Json::array();
    const std::string name = volume.volume["name"];
    if (std::any_of(all.begin(), all.end(), [&name](const Json& v) { return v.value("name", "") == name; }))
      return error("the pod has two volumes with the name '{}'", name);
    all.push_back(std::move(volume.volume));
    pilot(pod)["volumeMounts"].push_back(volume.mount);
    if (!volume.for_jobs) continue;
    for (auto* payload : payloads_of(pod)) (*payload)["volumeMounts"].push_back(volume.mount);
  }
  for (auto* payload : payloads_of(pod)) {
    TRY(give_own_shm(spec, *payload));
    // Not in the image's WORKDIR, which some runtimes cannot enter; a job has a folder of its own.
    payload->emplace("workingDir", "/");
  }
  return {};
}

}  // namespace glidepod::provisioner
