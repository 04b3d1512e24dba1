#include "provisioner/backends/pods.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/condor/ad_stream.hpp"
#include "provisioner/demand/demand.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

KubernetesSettings settings(std::string_view text) {
  Ini ini;
  REQUIRE(ini.read(text, "f").ok());
  const auto loaded = parse_settings(ini);
  if (!loaded) FAIL(loaded.error().message());
  return loaded->settings.kubernetes;
}

Result<Json> pod(std::string_view text, const Group& group, const Json* pod_template = nullptr) {
  const auto maker = TRY(PodMaker::create(settings(text), pod_template));
  return maker.make(group, "prp-wn-1");
}

void check_same(Result<Json> got, std::string_view wanted) {
  if (!got) FAIL(got.error().message());
  // It depends on all the others.
  auto& metadata = got.value()["metadata"];
  CHECK(metadata["annotations"].erase(k_made_as) == 1);
  if (metadata["annotations"].empty()) metadata.erase("annotations");
  // The difference as a JSON patch says field by field what is wrong.
  CHECK(Json::diff(got.value(), Json::parse(wanted)).dump() == "[]");
}

// What PRP sends for its defaults, except: a pod, not a job; no empty affinity.
constexpr std::string_view k_published = R"(
[DEFAULT]
namespace=default
[HTCondor]
additional_requirements= \
    ((DESIRED_Sites is undefined)|| \
        stringListMember("SDSC-PRP",DESIRED_Sites,","))&& \
        (!isUndefined(SingularityImage))
[k8s]
node_affinity_dict=^nautilus.io/low-power:true
)";

// A template with all that a pilot pod has.
Json pilot_pod() {
  return Json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"generateName": "pilot-", "labels": {"app.kubernetes.io/name": "glidepod-pilot"}},
    "spec": {
      "restartPolicy": "OnFailure", "shareProcessNamespace": true, "serviceAccountName": "glidepod-pilot",
      "initContainers": [{"name": "install", "image": "pilot:1"}],
      "containers": [
        {"name": "pilot", "image": "pilot:1", "imagePullPolicy": "IfNotPresent",
         "env": [{"name": "CONDOR_HOST", "value": "nowhere"}, {"name": "GLIDEPOD_PAYLOAD_CONTAINERS", "value": "2"}],
         "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
         "volumeMounts": [{"name": "shared", "mountPath": "/glidepod/run"}]},
        {"name": "payload-0", "image": "pilot:1", "volumeMounts": [{"name": "shared", "mountPath": "/glidepod/run"}]},
        {"name": "payload-1", "image": "pilot:1", "resources": {"limits": {"ephemeral-storage": "4Gi"}}, "volumeMounts": [{"name": "shared", "mountPath": "/glidepod/run"}]},
        {"name": "log", "image": "other:1"}],
      "volumes": [{"name": "shared", "emptyDir": {}}]}})");
}

}  // namespace

TEST_CASE("pods: the published configuration gives PRP's pod, field by field") {
  check_same(pod(k_published, {.cpus = 4, .memory_mb = 16000, .disk_kb = 9'000'000, .gpus = 1}), R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "prp-wn-1", "namespace": "default", "labels": {
      "k8s-app": "prp-wn", "prp-htcondor-portal": "wn", "PodCPUs": "4", "PodGPUs": "1", "PodMemory": "16000",
      "PodDisk": "9000000", "glidepod.io/group": "420f984ab51093a0"}},
    "spec": {
      "restartPolicy": "Never",
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "nautilus.io/low-power", "operator": "NotIn", "values": ["true"]}]}]}}},
      "containers": [{
        "name": "htcondor", "image": "sfiligoi/prp-portal-wn", "imagePullPolicy": "Always",
        "env": [
          {"name": "K8S_PROVISIONER_TYPE", "value": "PRPHTCondorProvisioner"},
          {"name": "K8S_PROVISIONER_NAME", "value": "prp-wn"},
          {"name": "CONDOR_HOST", "value": "prp-cm-htcondor.htcondor-portal.svc.cluster.local"},
          {"name": "STARTD_NOCLAIM_SHUTDOWN", "value": "1200"},
          {"name": "K8S_NAMESPACE", "value": "default"},
          {"name": "K8S_DOMAIN", "value": "optiputer.net"},
          {"name": "NUM_CPUS", "value": "4"},
          {"name": "NUM_GPUS", "value": "1"},
          {"name": "MEMORY", "value": "16000"},
          {"name": "DISK", "value": "9000000"},
          {"name": "FORCE_K8SNAMESPACE_MATCHING", "value": "yes"},
          {"name": "PHYSICAL_HOSTNAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {
          "requests": {"cpu": "3", "memory": "12800Mi", "ephemeral-storage": "20480000Ki", "nvidia.com/gpu": "1",
                       "smarter-devices/fuse": "1"},
          "limits": {"cpu": "4250m", "memory": "17000Mi", "ephemeral-storage": "20480000Ki", "nvidia.com/gpu": "1",
                     "smarter-devices/fuse": "1"}},
        "volumeMounts": [{"name": "configpasswd", "mountPath": "/etc/condor/tokens.d/prp-wn.token",
                          "subPath": "prp-wn.token", "readOnly": true}]}],
      "volumes": [{"name": "configpasswd", "secret": {"secretName": "prp-htcondor-wn-secret",
                   "items": [{"key": "prp-wn.token", "path": "prp-wn.token"}]}}]}})");
}

TEST_CASE("pods: every key of [k8s] has its field") {
  check_same(pod(R"([k8s]
namespace=osg
condor_host=cm
app_name=my-wn
k8s_domain=d
force_k8s_namespace_matching=
additional_requirements=(x =?= 1)
k8s_image=img:2
k8s_image_pull_policy=IfNotPresent
priority_class=low
priority_class_cpu=opportunistic2
service_account_name=sa
request_fuse=no
storage_mbs=
use_large_limit=no
resources_dict=example.com/nic:2
labels_dict=project:osg,k8s-app:other
annotations_dict=note:a&colon;b&comma;c
envs_dict=GLIDEIN_Site:SDSC-PRP,CONDOR_HOST:cm2
tolerations_list=nautilus.io/ci,other
node_selectors_dict=disk:ssd
node_affinity_dict=zone:a|b,^nautilus.io/low-power:true
pvc_volumes_dict=data.x:/data,soft:!#/soft
config_volumes_dict=extra:/etc/condor/config.d/99-extra.config
token_secret=
image_pull_secrets=pull
pod_lifetime=7200
)",
                 {.cpus = 1, .memory_mb = 4096}),
             R"json({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "prp-wn-1", "namespace": "osg", "annotations": {"note": "a:b,c"}, "labels": {
      "project": "osg", "k8s-app": "my-wn", "prp-htcondor-portal": "wn", "PodCPUs": "1", "PodGPUs": "0",
      "PodMemory": "4096", "PodDisk": "8000000", "glidepod.io/group": "8c5d0ab8529709db"}},
    "spec": {
      "restartPolicy": "Never", "priorityClassName": "opportunistic2", "serviceAccountName": "sa",
      "activeDeadlineSeconds": 7200, "imagePullSecrets": [{"name": "pull"}],
      "nodeSelector": {"disk": "ssd"},
      "tolerations": [{"effect": "NoSchedule", "key": "nautilus.io/ci", "operator": "Exists"},
                      {"effect": "NoSchedule", "key": "other", "operator": "Exists"}],
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]},
                              {"key": "nautilus.io/low-power", "operator": "NotIn", "values": ["true"]}]}]}}},
      "containers": [{
        "name": "htcondor", "image": "img:2", "imagePullPolicy": "IfNotPresent",
        "env": [
          {"name": "K8S_PROVISIONER_TYPE", "value": "PRPHTCondorProvisioner"},
          {"name": "K8S_PROVISIONER_NAME", "value": "my-wn"},
          {"name": "CONDOR_HOST", "value": "cm2"},
          {"name": "STARTD_NOCLAIM_SHUTDOWN", "value": "1200"},
          {"name": "K8S_NAMESPACE", "value": "osg"},
          {"name": "K8S_DOMAIN", "value": "d"},
          {"name": "NUM_CPUS", "value": "1"},
          {"name": "NUM_GPUS", "value": "0"},
          {"name": "MEMORY", "value": "4096"},
          {"name": "DISK", "value": "8000000"},
          {"name": "ADDITIONAL_REQUIREMENTS", "value": "(x =?= 1)"},
          {"name": "GLIDEIN_Site", "value": "SDSC-PRP"},
          {"name": "PHYSICAL_HOSTNAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {
          "requests": {"cpu": "1", "memory": "5096Mi", "ephemeral-storage": "8000000Ki", "example.com/nic": "2"},
          "limits": {"cpu": "1", "memory": "5096Mi", "ephemeral-storage": "8000000Ki", "example.com/nic": "2"}},
        "volumeMounts": [
          {"name": "data-x", "mountPath": "/data"},
          {"name": "soft", "mountPath": "/soft", "readOnly": true, "mountPropagation": "HostToContainer"},
          {"name": "extra", "mountPath": "/etc/condor/config.d/99-extra.config", "subPath": "99-extra.config"}]
}],
      "volumes": [
        {"name": "data-x", "persistentVolumeClaim": {"claimName": "data.x"}},
        {"name": "soft", "persistentVolumeClaim": {"claimName": "soft"}},
        {"name": "extra", "configMap": {"name": "extra",
         "items": [{"key": "99-extra.config", "path": "99-extra.config"}]}}]
}
})json");
}

TEST_CASE("pods: a template keeps what it has and gets the rest, jobs' resources in the payload containers") {
  const auto made = pod("[k8s]\nwarm=off\ncondor_host=cm\nk8s_image=pilot:2\npvc_volumes_dict=data:/data\n",
                        {.cpus = 3, .memory_mb = 9001}, std::make_unique<Json>(pilot_pod()).get());
  REQUIRE(made.ok());
  const auto& spec = (*made.operator->())["spec"];
  CHECK(spec["restartPolicy"] == "OnFailure");
  CHECK(spec["shareProcessNamespace"] == true);
  CHECK(spec["serviceAccountName"] == "glidepod-pilot");
  CHECK(made->at("metadata").contains("generateName") == false);
  CHECK(made->at("metadata")["labels"]["app.kubernetes.io/name"] == "glidepod-pilot");
  const auto& pilot = spec["containers"][0];
  CHECK(spec["initContainers"][0]["image"] == "pilot:2");
  CHECK(pilot["image"] == "pilot:2");
  CHECK(pilot["imagePullPolicy"] == "IfNotPresent");
  CHECK(spec["containers"][1]["image"] == "pilot:2");
  CHECK(spec["containers"][3]["image"] == "other:1");
  CHECK(pilot["env"][0] == Json{{"name", "CONDOR_HOST"}, {"value", "cm"}});
  CHECK(pilot["env"][1] == Json{{"name", "GLIDEPOD_PAYLOAD_CONTAINERS"}, {"value", "payload-0 payload-1"}});
  CHECK(pilot["resources"]["requests"]["cpu"] == "100m");
  CHECK(spec["containers"][1]["resources"] == Json::parse(R"({
    "requests": {"cpu": "1125m", "memory": "3600Mi", "ephemeral-storage": "20480000Ki"},
    "limits": {"cpu": "3250m", "memory": "10001Mi", "ephemeral-storage": "20480000Ki"}})"));
  CHECK(spec["containers"][2]["resources"] == Json::parse(R"({
    "requests": {"cpu": "1125m", "memory": "3600Mi"}, "limits": {"cpu": "3250m", "memory": "10001Mi"}})"));
  // What both have together, for a pilot that resizes them.
  const auto& annotations = made->at("metadata")["annotations"];
  CHECK(annotations["glidepod.io/requests.cpu"] == "2250m");
  CHECK(annotations["glidepod.io/requests.memory"] == "7200Mi");
  CHECK(annotations["glidepod.io/limits.cpu"] == "6500m");
  CHECK(annotations["glidepod.io/limits.memory"] == "20002Mi");
  for (const int payload : {1, 2})
    CHECK(spec["containers"][payload]["env"] ==
          Json::parse(R"([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])"));
  CHECK(spec["containers"][3].contains("env") == false);
  for (const int container : {0, 1, 2})
    CHECK(spec["containers"][container]["volumeMounts"][1]["name"] == "data");
  CHECK(spec["containers"][3].contains("volumeMounts") == false);
  CHECK(spec["volumes"].size() == 4);  // with a /dev/shm for each of the two
  const auto sum = resources_of_pod(*made.operator->()).value();
  CHECK(sum.cpu_milli == 2350);
  CHECK(sum.memory_bytes == (7200LL + 256) * 1024 * 1024);
  CHECK(sum.gpus == 0);
}

TEST_CASE(
    "pods: the pilot gets a token for the image store, its authority and its names, and the jobs do not") {
  const std::string text =
      "[k8s]\nimage_store=https://image-store.glidepod-system.svc:8443\nimage_store_repository=reg/files\n";
  const auto from = pilot_pod();
  const auto made = pod(text, {}, &from);
  REQUIRE(made.ok());
  const auto& spec = made->at("spec");
  const auto& volumes = spec["volumes"];
  const auto volume = std::ranges::find_if(volumes, [](const Json& v) { return v["name"] == "image-store"; });
  REQUIRE(volume != volumes.end());
  // Root's alone: whoever else is in the pod's containers has no use for it.
  CHECK(*volume == Json::parse(R"({"name": "image-store", "projected": {"defaultMode": 256, "sources": [
    {"serviceAccountToken": {"path": "token", "audience": "image-store", "expirationSeconds": 3600}},
    {"configMap": {"name": "glidepod-image-store-ca"}}]}})"));
  for (const auto& container : spec["containers"]) {
    const auto mounts = container.value("volumeMounts", Json::array());
    const Json mount = {{"name", "image-store"},
                        {"mountPath", "/var/run/secrets/glidepod.io/image-store"},
                        {"readOnly", true}};
    CHECK(std::ranges::count(mounts, mount) == (container["name"] == "pilot" ? 1 : 0));
  }
  const auto value = [&](const std::string& name) {
    for (const auto& each : spec["containers"][0]["env"])
      if (each["name"] == name) return each["value"].get<std::string>();
    return std::string();
  };
  CHECK(value("GLIDEPOD_IMAGE_STORE") == "https://image-store.glidepod-system.svc:8443");
  CHECK(value("GLIDEPOD_IMAGE_STORE_REPOSITORY") == "reg/files");
  CHECK(value("GLIDEPOD_IMAGE_STORE_CA") == "/var/run/secrets/glidepod.io/image-store/ca.crt");
}

TEST_CASE("pods: an image store needs the name of its images, and a template that knows one has no other") {
  CHECK(pod("[k8s]\nimage_store=https://s:1\n", {}).error().message() ==
        "image_store and image_store_repository are given together, or neither");
  CHECK_FALSE(pod("[k8s]\nimage_store_repository=reg/files\n", {}));
  auto from = pilot_pod();
  from["spec"]["volumes"].push_back({{"name", "image-store"}, {"emptyDir", Json::object()}});
  CHECK(pod("[k8s]\nimage_store=https://s:1\nimage_store_repository=reg/files\n", {}, &from)
            .error()
            .message() == "the pod has two volumes with the name 'image-store'");
}

TEST_CASE(
    "pods: the pilot is told the group's sizes, and the pod may have as much on disk and 500 MiB more") {
  const auto from_template = pilot_pod();
  PolicySettings policy;
  policy.memory_buckets = {"8192"};
  policy.disk_buckets = {"30000000"};
  const auto job = condor::ad_from_json(R"({"RequestMemory": 5000, "RequestDisk": 9000000})").value();
  const auto group = group_of(job, policy).value();
  const auto told = [](const Json& made, const char* name) {
    for (const auto& variable : made["spec"]["containers"][0]["env"])
      if (variable["name"] == name) return variable.value("value", "");
    return std::string("none");
  };
  const auto made = pod("[k8s]\n", group, &from_template).value();
  CHECK(told(made, "MEMORY") == "8192");
  CHECK(told(made, "DISK") == "30000000");
  CHECK(resources_of_pod(made).value().disk_bytes == (30'000'000LL + 512'000) * 1024);
  // storage_mbs raises the pod's disk alone; a container's own would be added.
  const auto raised = pod("[k8s]\nstorage_mbs=40000\n", group, &from_template).value();
  CHECK(told(raised, "DISK") == "30000000");
  CHECK(resources_of_pod(raised).value().disk_bytes == 40'000LL * 1024 * 1024);
  CHECK_FALSE(raised["spec"]["containers"][2]["resources"]["limits"].contains("ephemeral-storage"));
  // What START lets in: PRP's defaults are not said.
  CHECK(told(made, "GLIDEPOD_GPU_JOBS_ONLY") == "none");
  CHECK(told(made, "GLIDEPOD_LEAST_FILL") == "none");
  CHECK(told(made, "GLIDEPOD_DEFAULT_IMAGE") == "none");
  CHECK(told(made, "GLIDEPOD_PILOT_JOBS") == "none");
  CHECK(told(made, "GLIDEPOD_POD_LIFETIME") == "none");
  const auto set = pod("[k8s]\ngpu_jobs_only=no\nleast_fill=50\ndefault_image=docker://a:1\npilot_jobs=yes\n"
                       "pod_lifetime=7200\n",
                       group, &from_template)
                       .value();
  CHECK(told(set, "GLIDEPOD_POD_LIFETIME") == "7200");
  CHECK(told(set, "GLIDEPOD_DEFAULT_IMAGE") == "docker://a:1");
  CHECK(told(set, "GLIDEPOD_GPU_JOBS_ONLY") == "no");
  CHECK(told(set, "GLIDEPOD_PILOT_JOBS") == "true");
  CHECK(told(set, "GLIDEPOD_LEAST_FILL") == "50");
}

TEST_CASE("pods: with GPUs there is one payload container, which has them all") {
  const auto from_template = pilot_pod();
  const auto made = pod("[k8s]\n", {.cpus = 3, .memory_mb = 9001, .gpus = 2}, &from_template);
  REQUIRE(made.ok());
  const auto& containers = made->at("spec")["containers"];
  REQUIRE(containers.size() == 3);
  CHECK(containers[0]["env"][1] == Json{{"name", "GLIDEPOD_PAYLOAD_CONTAINERS"}, {"value", "payload-0"}});
  CHECK(containers[1]["name"] == "payload-0");
  CHECK(containers[1]["resources"]["limits"]["nvidia.com/gpu"] == "2");
  CHECK(containers[1]["resources"]["requests"]["cpu"] == "2250m");
  CHECK(containers[2]["name"] == "log");
  CHECK(resources_of_pod(*made.operator->()).value().gpus == 2);
  CHECK_FALSE(containers[1].contains("env"));
}

TEST_CASE("pods: GPUs of a kind may be a resource of their own") {
  const auto from_template = pilot_pod();
  const auto asks = [&from_template](const char* settings, const std::string& kinds) -> std::string {
    const auto made =
        pod(settings, {.cpus = 1, .memory_mb = 4096, .gpus = 2, .gpu_types = kinds}, &from_template);
    if (!made) return made.error().message();
    const auto& spec = made->at("spec");
    std::string result;
    const auto& resources = spec["containers"][1]["resources"];
    for (const auto& [name, quantity] : resources["limits"].items()) {
      if (name.find('/') == std::string::npos) continue;
      result += name + "=" + quantity.get<std::string>();
      CHECK(resources["requests"].at(name) == quantity);
    }
    return result + (spec.contains("affinity") ? " by label" : "");
  };
  constexpr const char* k_some =
      "[k8s]\ngpu_resources=A100:nvidia.com/a100,MI250:amd.com/gpu,MI300:amd.com/gpu\n";
  CHECK(asks("[k8s]\n", "") == "nvidia.com/gpu=2");
  CHECK(asks("[k8s]\n", "A100") == "nvidia.com/gpu=2 by label");
  CHECK(asks(k_some, "") == "nvidia.com/gpu=2");
  CHECK(asks(k_some, "A100") == "nvidia.com/a100=2");
  CHECK(asks(k_some, "L40,T4") == "nvidia.com/gpu=2 by label");
  CHECK(asks(k_some, "MI250,MI300") == "amd.com/gpu=2");
  const auto whole =
      pod(k_some, {.cpus = 1, .memory_mb = 4096, .gpus = 2, .gpu_types = "MI250"}, &from_template);
  const auto sum = resources_of_pod(*whole.operator->()).value();
  CHECK(sum.gpus == 0);
  CHECK(sum.devices.at("amd.com/gpu") == 2);
  const auto maker = PodMaker::create(settings(std::string(k_some) + "resources_dict=a/b:1\n"), nullptr);
  CHECK(maker.value().devices() == std::set<std::string>{"amd.com/gpu", "nvidia.com/a100"});
  CHECK(asks(k_some, "A100,L40") ==
        "RequestGPUTypes names kinds of different resources: A100 is nvidia.com/a100, L40 is nvidia.com/gpu "
        "(gpu_resources)");
  CHECK(asks("[k8s]\ngpu_resources=*:amd.com/gpu\n", "") == "amd.com/gpu=2");
  CHECK(asks("[k8s]\ngpu_resources=*:amd.com/gpu\n", "MI250") == "amd.com/gpu=2");
}

TEST_CASE("pods: Guaranteed, no container may use more than it requests, in the template or not") {
  const auto from_template = pilot_pod();
  const auto made = pod("[k8s]\nqos_class=Guaranteed\n", {.cpus = 3, .memory_mb = 9001}, &from_template);
  REQUIRE(made.ok());
  const auto& containers = made->at("spec")["containers"];
  REQUIRE(containers.size() == 3);
  for (const auto* lists : {"initContainers", "containers"})
    for (const auto& container : made->at("spec")[lists])
      CHECK(container["resources"]["requests"] == container["resources"]["limits"]);
  const auto& pilot = containers[0]["resources"]["limits"];
  CHECK(pilot == Json{{"cpu", "100m"}, {"memory", "512Mi"}});
  const auto& payload = containers[1]["resources"]["limits"];
  CHECK(containers[1]["name"] == "payload-0");
  CHECK(payload["cpu"] == "3");
  CHECK(payload["memory"] == "10001Mi");
  CHECK(made->at("metadata")["annotations"]["glidepod.io/limits.memory"] == "10001Mi");
}

TEST_CASE("pods: who was given no device sees none, whatever its image says") {
  const auto env_of_payload = [](const Json& from, const char* settings) {
    const auto made = pod(settings, {.cpus = 1, .memory_mb = 4096}, &from).value();
    return made["spec"]["containers"][1].value("env", Json());
  };
  const Json none = Json::parse(R"([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])");
  CHECK(env_of_payload(pilot_pod(), "[k8s]\n") == none);
  CHECK(env_of_payload(pilot_pod(), "[k8s]\nrequest_fuse=yes\n") == none);
  CHECK(env_of_payload(pilot_pod(), "[k8s]\nresources_dict=example.com/accelerator:1\n") == Json());
  auto other = pilot_pod();
  auto& payload = other["spec"]["containers"][1];
  payload["resources"]["claims"] = Json::parse(R"([{"name": "gpus", "request": "first"}])");
  CHECK(env_of_payload(other, "[k8s]\n") == Json());
  payload["resources"]["claims"] = Json::array();
  payload["resources"]["limits"]["nvidia.com/mig-1g.5gb"] = "1";
  CHECK(env_of_payload(other, "[k8s]\n") == Json());
  payload["resources"] = Json::object();
  payload["env"] = Json::parse(R"([{"name": "A", "value": "b"}])");
  CHECK(env_of_payload(other, "[k8s]\n").size() == 2);
  payload["env"] = Json::parse(R"([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}])");
  CHECK(env_of_payload(other, "[k8s]\n") == payload["env"]);
}

TEST_CASE("pods: without an image of its own a template keeps the one it has") {
  const auto from_template = pilot_pod();
  const auto maker = PodMaker::create(settings("[k8s]\n"), &from_template);
  REQUIRE(maker.ok());
  CHECK(maker->image() == "pilot:1");
}

TEST_CASE("pods: what a group asks for besides sizes") {
  const auto made =
      pod("[k8s]\npriority_class=p\npriority_class_gpu=pg\n",
          {.disk_volumes = "data:/data", .gpus = 1, .gpu_types = "A100,L40", .labels = "zone:a"});
  REQUIRE(made.ok());
  const auto& spec = made->at("spec");
  CHECK(spec["priorityClassName"] == "pg");
  CHECK(spec["nodeSelector"] == Json{{"zone", "a"}});
  const auto& env = spec["containers"][0]["env"];
  for (const auto& [name, value] :
       {std::pair("GLIDEPOD_LABELS", "zone:a"), std::pair("GLIDEPOD_GPU_TYPES", "A100,L40"),
        std::pair("GLIDEPOD_DISK_VOLUMES", "data:/data")})
    CHECK(std::ranges::count(env, Json{{"name", name}, {"value", value}}) == 1);
  CHECK(spec["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data");
  CHECK(spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            ["nodeSelectorTerms"][0]["matchExpressions"][0] ==
        Json::parse(R"({"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A100", "L40"]})"));
}

TEST_CASE("pods: how a pod was made is the same for every name, and another one for other settings") {
  const auto made_as = [](std::string_view text, const char* name) {
    const auto maker = PodMaker::create(settings(text), nullptr);
    return maker->make({}, name).value()["metadata"]["annotations"][k_made_as].get<std::string>();
  };
  const auto first = made_as("[k8s]\n", "a");
  CHECK(made_as("[k8s]\n", "b") == first);
  CHECK(made_as("[k8s]\nk8s_image=other\n", "a") != first);
  CHECK(made_as("[k8s]\nenvs_dict=a:b\n", "a") != first);
  CHECK(made_as("[k8s]\nmax_pods_per_cluster=3\n", "a") == first);
}

TEST_CASE("pods: every group is found again in its pod") {
  for (const auto& group :
       {Group{}, Group{.cpus = 4, .memory_mb = 9000, .disk_kb = 10'000'000},
        Group{.disk_volumes = "data:/data", .gpus = 1, .gpu_types = "A100,L40", .labels = "zone:a"}}) {
    const auto made = pod("[k8s]\n", group);
    REQUIRE(made.ok());
    CHECK(group_of_pod(*made.operator->()).value() == group);
  }
  // One that PRP made.
  CHECK(group_of_pod(Json::parse(R"({"metadata": {"labels": {"PodCPUs": "2", "PodMemory": "8192"}}})"))
            .value()
            .name() == "2;8192;8000000;;0;;");
  CHECK_FALSE(group_of_pod(Json::parse(R"({"metadata": {"labels": {"PodCPUs": "x"}}})")).ok());
}

TEST_CASE("pods: all terms of a template's affinity get the expressions, but one that matches no node") {
  auto from_template = pilot_pod();
  from_template
      ["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
      ["nodeSelectorTerms"] = Json::parse(
          R"([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": [{"key": "f"}]},
                       {"matchFields": []}])");
  const auto made = pod("[k8s]\nnode_affinity_dict=^b:1\n", {}, &from_template);
  REQUIRE(made.ok());
  const auto& terms = made->at("spec")["affinity"]["nodeAffinity"]
                                      ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  CHECK(terms[0]["matchExpressions"].size() == 2);
  CHECK(terms[1]["matchExpressions"].size() == 1);
  CHECK(!terms[2].contains("matchExpressions"));
}

TEST_CASE("pods: a name is the same for the same cycle, group and number, and fit for a host") {
  const Group group;
  const Time cycle{Seconds(1'700'000'000)};
  const auto name = pod_name("prp-wn", group, cycle, 3);
  CHECK(name == "prp-wn-" + group.hash() + "-6553f100-3");
  CHECK(pod_name("prp-wn", group, cycle, 3) == name);
  CHECK(pod_name("prp-wn", group, cycle, 4) != name);
  CHECK(pod_name("prp-wn", {.cpus = 2}, cycle, 3) != name);
  CHECK(pod_name(std::string(100, 'a'), group, cycle, 3).size() == 63);
}

// By the first eight digits alone these two had one name, and a pod of one was counted as the other's.
TEST_CASE("pods: groups are told apart by sixteen digits") {
  const Group small{.cpus = 1, .memory_mb = 9845}, large{.cpus = 8, .memory_mb = 17874};
  CHECK(small.hash().size() == 16);
  CHECK(small.hash().substr(0, 8) == large.hash().substr(0, 8));
  CHECK(small.hash() != large.hash());
  const Time cycle{Seconds(1'700'000'000)};
  CHECK(pod_name("prp-wn", small, cycle, 1) != pod_name("prp-wn", large, cycle, 1));
}

// Each value in it in turn is something else: whatever comes of it, nothing is thrown.
TEST_CASE("pods: a template may hold anything") {
  const auto whole = pilot_pod();
  const auto flat = whole.flatten();
  std::set<std::string> places;
  for (const auto& [path, value] : flat.items())
    for (auto at = Json::json_pointer(path); !at.empty(); at.pop_back()) places.insert(at.to_string());
  for (const auto& place : places)
    for (const auto& other : {Json(), Json(1), Json("x"), Json::array(), Json::array({1}), Json::object()}) {
      CAPTURE(place);
      CAPTURE(other.dump());
      auto from_template = whole;
      from_template[Json::json_pointer(place)] = other;
      CHECK_NOTHROW((void)pod("[k8s]\npvc_volumes_dict=claim:/x\n", {}, &from_template));
    }
}

TEST_CASE("pods: a template that is none, and volumes of one name, are errors") {
  for (const auto* text :
       {"[]", "{}", R"({"kind": "Pod"})", R"({"kind": "Pod", "spec": {"containers": []}})",
        R"({"kind": "Pod", "spec": {"containers": [{}]}})", R"({"kind": "Job", "spec": {}})",
        R"({"kind": {}, "spec": {"containers": [{"name": "pilot"}]}})",
        R"({"kind": "Pod", "spec": {"containers": [{"name": "pilot", "image": 1}]}})"}) {
    CAPTURE(text);
    const auto json = Json::parse(text);
    CHECK_FALSE(PodMaker::create(settings("[k8s]\n"), &json).ok());
  }
  const auto from_template = pilot_pod();
  CHECK(pod("[k8s]\npvc_volumes_dict=shared:/x\n", {}, &from_template).error().message() ==
        "the pod has two volumes with the name 'shared'");
}

TEST_CASE("pods: a payload container begins in /, unless its template says otherwise") {
  const auto begins_in = [](const Json& pod_template) {
    const auto made = pod("[k8s]\n", Group{.cpus = 1, .memory_mb = 1000}, &pod_template);
    REQUIRE(made.ok());
    return made->at("spec")["containers"][1].value("workingDir", "");
  };
  CHECK(begins_in(pilot_pod()) == "/");
  Json other = pilot_pod();
  other["spec"]["containers"][1]["workingDir"] = "/tmp";
  CHECK(begins_in(other) == "/tmp");
}

TEST_CASE("pods: each payload container has a /dev/shm of its own, as large as its memory") {
  auto from_template = pilot_pod();
  auto& spec = from_template["spec"];
  const auto shm_of = [](const Json& made, int container) {
    for (const auto& mount : made["spec"]["containers"][container]["volumeMounts"])
      if (mount["mountPath"] == "/dev/shm")
        for (const auto& volume : made["spec"]["volumes"])
          if (volume["name"] == mount["name"]) return volume;
    return Json();
  };
  const Json memory = {{"medium", "Memory"}, {"sizeLimit", "10001Mi"}};
  Group group{.cpus = 2, .memory_mb = 9001};
  SUBCASE("a template of an older release") {}
  SUBCASE("a template that has it, of another size") {
    for (int i : {1, 2}) {
      const std::string name = fmt::format("payload-{}-shm", i - 1);
      spec["containers"][i]["volumeMounts"].push_back({{"name", name}, {"mountPath", "/dev/shm"}});
      spec["volumes"].push_back({{"name", name}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", "1Gi"}}}});
    }
    group.gpus = 1;
    const auto one = pod("[k8s]\n", group, &from_template);
    REQUIRE(one.ok());
    CHECK(shm_of(*one, 1)["emptyDir"] == memory);
    CHECK(one->at("spec")["volumes"].dump().find("payload-1-shm") == std::string::npos);
    group.gpus = 0;
  }
  SUBCASE("a template in which two have the same") {
    for (int i : {1, 2})
      spec["containers"][i]["volumeMounts"].push_back({{"name", "shared"}, {"mountPath", "/dev/shm"}});
    CHECK(pod("[k8s]\n", group, &from_template).error().message() ==
          "pod template: payload-0 and payload-1 have one /dev/shm, volume 'shared': give each its own");
    return;
  }
  const auto made = pod("[k8s]\n", group, &from_template);
  REQUIRE(made.ok());
  for (int i : {1, 2}) {
    const Json shm = shm_of(*made, i);
    CHECK(shm["name"] == fmt::format("payload-{}-shm", i - 1));
    CHECK(shm["emptyDir"] == memory);
  }
  CHECK(shm_of(*made, 0) == Json());
}
