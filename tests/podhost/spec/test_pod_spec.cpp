#include "podhost/spec/pod_spec.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/podhost/pods.hpp"

using namespace glidepod::podhost;

namespace {

const SpecRules k_rules{.node_name = "node"};

// The message a pod is refused with, empty if it is not, after one change at a JSON pointer.
std::string refusal(const std::string& pointer, const Json& value) {
  Json pod = sample_pod();
  pod[Json::json_pointer(pointer)] = value;
  const auto parsed = parse_pod(pod, k_rules);
  return parsed ? "" : parsed.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("pod_spec: the defaults of the API server") {
  const Json pod = sample_pod();
  const Json& container = pod["spec"]["containers"][0];
  CHECK(container["imagePullPolicy"] == "IfNotPresent");
  CHECK(container["terminationMessagePath"] == "/dev/termination-log");
  CHECK(pod["spec"]["restartPolicy"] == "Always");
  CHECK(pod["spec"]["terminationGracePeriodSeconds"] == 30);
  CHECK(pod["spec"]["nodeName"] == "node");
}

TEST_CASE("pod_spec: imagePullPolicy is Always for latest, even unwritten") {
  for (const auto& [image, policy] :
       {std::pair("a", "Always"), {"a:latest", "Always"}, {"a:1", "IfNotPresent"}, {"r:5000/a", "Always"}}) {
    Json pod = sample_pod();
    pod["spec"]["containers"][0].erase("imagePullPolicy");
    pod["spec"]["containers"][0]["image"] = image;
    set_defaults(pod, k_rules);
    CHECK(pod["spec"]["containers"][0]["imagePullPolicy"] == policy);
  }
}

TEST_CASE("pod_spec: what podhost does not support is refused by name") {
  const std::string words = "podhost does not support this field";
  for (const std::string path :
       {"/spec/containers/0/livenessProbe", "/spec/containers/0/lifecycle", "/spec/containers/1/startupProbe",
        "/spec/containers/0/envFrom", "/spec/containers/0/volumeDevices", "/spec/affinity",
        "/spec/nodeSelector", "/spec/priorityClassName", "/spec/dnsConfig", "/spec/volumes/0/nfs",
        "/spec/volumes/0/secret", "/spec/securityContext/sysctls",
        "/spec/containers/0/securityContext/windowsOptions", "/spec/noSuchField"}) {
    std::string field = path.substr(1);
    for (auto at = field.find('/'); at != std::string::npos; at = field.find('/')) field[at] = '.';
    for (const std::string index : {".0", ".1"}) {
      if (const auto at = field.find(index); at != std::string::npos)
        field.replace(at, 2, "[" + index.substr(1) + "]");
    }
    CHECK(contains(refusal(path, Json{{"x", 1}}), field + ": " + words));
  }
  CHECK(contains(refusal("/spec/hostPID", true), "spec.hostPID: " + words));
  CHECK(refusal("/spec/hostPID", false).empty());
  CHECK(contains(refusal("/spec/containers/0/tty", true), "spec.containers[0].tty: " + words));
}

TEST_CASE(
    "pod_spec: an init container with restartPolicy Always is a sidecar, and no other field's value is "
    "served") {
  Json pod = sample_pod();
  pod["spec"]["initContainers"] = Json::parse(
      R"([{"name": "install", "image": "i"}, {"name": "beside", "image": "i", "restartPolicy": "Always"}])");
  const PodSpec spec = sample_spec(pod);
  CHECK_FALSE(spec.init_containers.at(0).sidecar);
  CHECK(spec.init_containers.at(1).sidecar);
  for (const char* path : {"/spec/initContainers/0/restartPolicy", "/spec/containers/1/restartPolicy"})
    for (const char* value : {"Never", "OnFailure"}) {
      CAPTURE(path);
      Json other = pod;
      other[Json::json_pointer(path)] = value;
      CHECK_FALSE(parse_pod(other, {.node_name = "node"}).ok());
    }
  pod["spec"]["containers"][1]["restartPolicy"] = "Always";
  CHECK_FALSE(parse_pod(pod, {.node_name = "node"}).ok());
}

TEST_CASE("pod_spec: values are checked as Kubernetes does") {
  CHECK(contains(refusal("/metadata/name", "Bad_Name"), "metadata.name: Invalid value"));
  CHECK(
      contains(refusal("/spec/restartPolicy", "Maybe"), "spec.restartPolicy: Unsupported value: \"Maybe\""));
  CHECK(contains(refusal("/spec/containers/0/image", ""), "spec.containers[0].image: Required value"));
  CHECK(contains(refusal("/spec/containers", Json::array()), "spec.containers: Required value"));
  CHECK(contains(refusal("/spec/containers/1/name", "pilot"), "spec.containers[1].name: Duplicate value"));
  CHECK(contains(refusal("/spec/containers/0/volumeMounts/0/name", "none"), "Not found: \"none\""));
  CHECK(contains(refusal("/spec/containers/0/volumeMounts/0/subPath", "../x"), "must not contain '..'"));
  CHECK(contains(refusal("/spec/containers/0/securityContext", {{"privileged", true}}),
                 "privileged: Forbidden"));
  CHECK(contains(refusal("/spec/containers/0/resources", {{"limits", {{"cpu", "lots"}}}}),
                 "limits.cpu: Invalid value"));
  CHECK(contains(refusal("/spec/nodeName", "elsewhere"), "spec.nodeName: Unsupported value"));
  CHECK(contains(refusal("/spec/automountServiceAccountToken", true), "projected volume"));
  CHECK(contains(refusal("/spec/containers/0/ports", {{{"containerPort", 1}, {"hostPort", 1}}}), "hostPort"));
  CHECK(contains(refusal("/spec/containers/0/command", "sh"), "spec.containers[0].command: Invalid value"));
  CHECK(contains(refusal("/spec/containers/0", 5), "spec.containers[0]: Invalid value"));
}

TEST_CASE("pod_spec: a whole pod is understood") {
  Json pod = sample_pod();
  Json& spec = pod["spec"];
  spec["shareProcessNamespace"] = true;
  spec["automountServiceAccountToken"] = false;
  spec["tolerations"] = {{{"operator", "Exists"}}};
  spec["securityContext"] = {{"fsGroup", 100}, {"supplementalGroups", {1, 2}}, {"runAsUser", 5}};
  spec["volumes"].push_back({{"name", "mem"}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", "1Mi"}}}});
  spec["volumes"].push_back(Json::parse(R"({"name": "sa", "projected": {"sources": [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}})"));
  spec["containers"][1]["securityContext"] =
      Json::parse(R"({"runAsUser": 0, "allowPrivilegeEscalation": false,
    "capabilities": {"drop": ["ALL"], "add": ["KILL"]}, "seccompProfile": {"type": "RuntimeDefault"}})");
  spec["containers"][1]["resources"] = {{"limits", {{"cpu", "500m"}, {"memory", "1Gi"}}}};
  const auto parsed = parse_pod(pod, k_rules);
  REQUIRE(parsed);
  const PodSpec& result = parsed->spec;
  CHECK(result.share_processes);
  CHECK(result.fs_group == 100);
  CHECK(result.volumes[1].in_memory);
  CHECK(result.volumes[1].size_limit == 1048576);
  CHECK(std::ranges::any_of(result.volumes, [](const Volume& volume) { return volume.api_socket; }));
  CHECK(result.containers[0].security.run_as_user == 5);
  CHECK(result.containers[1].security.run_as_user == 0);
  CHECK_FALSE(result.containers[1].security.allow_escalation);
  CHECK(result.containers[1].resources.cpu_limit_milli == 500);
  CHECK(result.containers[1].resources.cpu_request_milli == 500);
  CHECK(qos_class(result) == "Burstable");
}

TEST_CASE("pod_spec: what is accepted without effect is warned of") {
  Json pod = sample_pod();
  pod["spec"]["volumes"][0]["emptyDir"] = {{"sizeLimit", "1Gi"}};
  const auto parsed = parse_pod(pod, k_rules);
  REQUIRE(parsed);
  REQUIRE(parsed->warnings.size() == 1);
  CHECK(contains(parsed->warnings[0], "spec.volumes[0].emptyDir.sizeLimit"));
}
