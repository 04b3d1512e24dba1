#include "provisioner/backends/pod_state.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

// A pod of the API with this status; "spec" may add a node.
Pod pod(std::string_view status, bool has_node = true, std::string_view metadata = "") {
  auto json =
      Json::parse(fmt::format(R"({{"metadata": {{"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"{}}},
    "spec": {{"containers": [{{"name": "pilot", "image": "img"}}, {{"name": "payload-0", "image": "other"}}]}},
    "status": {}}})",
                              metadata, status));
  if (has_node) json["spec"]["nodeName"] = "n";
  return read_pod(json).value();
}

PodState waiting(std::string_view reason) {
  return pod(fmt::format(R"({{"phase": "Pending", "containerStatuses": [
    {{"name": "pilot", "state": {{"waiting": {{"reason": "{}"}}}}}}]}})",
                         reason))
      .state;
}

const Time k_created = read_time("2026-01-01T00:00:00Z");

}  // namespace

TEST_CASE("pod_state: Pending is split by its cause") {
  CHECK(pod(R"({"phase": "Pending"})", false).state == PodState::unschedulable);
  CHECK(pod(R"({"phase": "Pending"})").state == PodState::pulling);
  CHECK(waiting("ContainerCreating") == PodState::pulling);
  CHECK(waiting("PodInitializing") == PodState::pulling);
  for (const auto* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
    CHECK(waiting(reason) == PodState::pull_error);
  CHECK(waiting("CreateContainerConfigError") == PodState::starting);
  CHECK(
      pod(R"({"phase": "Pending", "initContainerStatuses": [{"name": "install", "state": {"running": {}}}]})")
          .state == PodState::starting);
  CHECK(pod(R"({"phase": "Pending", "initContainerStatuses": [
              {"name": "install", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]})")
            .state == PodState::pull_error);
}

TEST_CASE("pod_state: a running pod is as its pilot container is, whatever the payloads do") {
  const auto running = pod(R"({"phase": "Running", "containerStatuses": [
    {"name": "payload-0", "state": {"waiting": {"reason": "ErrImagePull"}}},
    {"name": "pilot", "state": {"running": {"startedAt": "2026-01-01T00:05:00Z"}}}]})");
  CHECK(running.state == PodState::unregistered);
  CHECK(running.since == k_created + Seconds(300));
  CHECK(running.image == "img");
  CHECK(pod(R"({"phase": "Running", "containerStatuses": [
    {"name": "pilot", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]})")
            .state == PodState::starting);
}

TEST_CASE("pod_state: what a payload container waits for is no trouble of the pilot's") {
  const auto with = [](std::string_view pilot, std::string_view payload) {
    return pod(fmt::format(R"({{"phase": "Pending", "containerStatuses": [
      {{"name": "pilot", "state": {}}}, {{"name": "payload-0", "state": {{"waiting": {{"reason": "{}"}}}}}}]}})",
                           pilot, payload));
  };
  for (const auto* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ContainerCreating"}) {
    const auto runs = with(R"({"running": {"startedAt": "2026-01-01T00:05:00Z"}})", reason);
    CHECK(runs.state == PodState::unregistered);
    CHECK(runs.since == k_created + Seconds(300));
    CHECK_FALSE(runs.jobless);
    CHECK(with(R"({"waiting": {"reason": "ContainerCreating"}})", reason).state != PodState::pull_error);
    CHECK(with(R"({"waiting": {"reason": "ErrImagePull"}})", reason).state == PodState::pull_error);
  }
}

TEST_CASE("pod_state: in a pod of Never a pilot that has ended leaves no job, whatever runs on") {
  auto json = Json::parse(R"({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "pilot"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "pilot", "state": {"terminated": {"exitCode": 1}}}]}})");
  CHECK_FALSE(read_pod(json)->jobless);  // it starts again
  json["spec"]["restartPolicy"] = "Never";
  CHECK(read_pod(json)->jobless);
}

TEST_CASE("pod_state: what it waits for while its node may be at work on a job's image") {
  // Not while it is at work on the pilot's.
  CHECK(pod(R"({"phase": "Pending"})").awaits.empty());
  const auto installed = pod(R"({"phase": "Pending", "initContainerStatuses": [
    {"name": "install", "state": {"terminated": {"finishedAt": "2026-01-01T00:03:00Z"}}}]})");
  CHECK(installed.awaits == List{"other"});
  CHECK(installed.since == k_created + Seconds(180));
  CHECK(pod(R"({"phase": "Pending", "containerStatuses": [{"name": "pilot", "state": {"running": {}}}]})")
            .awaits.empty());
  CHECK(pod(R"({"phase": "Pending", "containerStatuses": [
              {"name": "pilot", "state": {"waiting": {"reason": "ErrImagePull"}}}]})")
            .awaits.empty());
}

TEST_CASE("pod_state: spare containers, and what their pilot was told") {
  auto json = Json::parse(R"({"metadata": {"name": "p", "annotations": {"glidepod.io/likely-images": "[]"}},
    "spec": {"containers": [{"name": "pilot", "env": [{"name": "X"}, {"name": "GLIDEPOD_SPARES", "value": "2"}]}]}})");
  CHECK(read_pod(json).value().spares == 2);
  CHECK(read_pod(json).value().likely == "[]");
  json["spec"]["containers"][0]["env"][1]["value"] = "many";
  CHECK(read_pod(json).value().spares == 0);
  json["spec"]["containers"][0]["env"][1] = {{"name", "GLIDEPOD_WARM"}, {"value", "3"}};
  CHECK(read_pod(json).value().spares == 3);
  CHECK(read_pod(json).value().likely == "[]");
}

TEST_CASE("pod_state: what keeps a pod waiting, in the words of who keeps it") {
  CHECK(pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
    "message": "0/1 nodes are available"}]})",
            false)
            .message == "0/1 nodes are available");
  CHECK(
      pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True", "message": "x"}],
    "containerStatuses": [{"name": "pilot", "state": {"waiting": {"reason": "ErrImagePull", "message": "no\nway"}}}]})")
          .message == "ErrImagePull: no");
  CHECK(pod(R"({"phase": "Pending"})").message.empty());
}

// It waits, and is a reason for no new one; but whether nodes have room nobody has asked.
TEST_CASE("pod_state: a pod with a scheduling gate waits, in the gate's words") {
  const auto gated = pod(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
    "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}]})",
                         false);
  CHECK(gated.state == PodState::gated);
  CHECK(gated.jobless);
  CHECK(gated.message == "Scheduling is blocked due to non-empty scheduling gates");
}

TEST_CASE("pod_state: times") {
  CHECK(pod(R"({"phase": "Pending"})", false).since == k_created);
  CHECK(pod(R"({"phase": "Pending", "conditions": [
    {"type": "PodScheduled", "lastTransitionTime": "2026-01-01T00:01:00Z"}]})")
            .since == k_created + Seconds(60));
  const auto ended = pod(R"({"phase": "Failed", "containerStatuses": [
    {"name": "pilot", "state": {"terminated": {"finishedAt": "2026-01-01T01:00:00Z"}}},
    {"name": "payload-0", "state": {"terminated": {"finishedAt": "2026-01-01T00:30:00Z"}}}]})");
  CHECK(ended.state == PodState::failed);
  CHECK(ended.since == k_created + Seconds(3600));
  CHECK(pod(R"({"phase": "Succeeded"})").state == PodState::succeeded);
  CHECK(read_time("yesterday") == Time{});
  CHECK(read_time(Json()) == Time{});
}

TEST_CASE("pod_state: a pod with a deadline is near its end in its last tenth, at least ten minutes") {
  const auto near = [](std::int64_t deadline) {
    Json pod = Json::parse(
        R"({"metadata": {"name": "p"}, "status": {"phase": "Running", "startTime": "2026-01-01T00:01:00Z"},
      "spec": {"containers": [{"name": "pilot"}]}})");
    if (deadline >= 0) pod["spec"]["activeDeadlineSeconds"] = deadline;
    return read_pod(pod).value().near_end;
  };
  const auto started = k_created + Seconds(60);
  CHECK(near(86400) == started + Seconds(77760));
  CHECK(near(3600) == started + Seconds(3000));
  CHECK(near(300) == started);
  CHECK(near(INT64_MAX) > started + Seconds(800'000'000));
  CHECK(near(-1) == Time{});
}

TEST_CASE("pod_state: pods on their way out and lost ones take room and nothing else") {
  CHECK(pod(R"({"phase": "Running"})", true, R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")").state ==
        PodState::unknown);
  CHECK(pod(R"({"phase": "Unknown"})").state == PodState::unknown);
  CHECK(pod(R"({"phase": "Unknown"})").message == "its node does not answer");
  CHECK(pod(R"({"phase": "Running"})", true,
            R"(, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.org/a", 1, "b\nc"])")
            .message ==
        "asked to end, by 2026-01-01T00:00:00Z at the latest; kept by the finalizer example.org/a; kept by "
        "the finalizer b");
}

TEST_CASE("pod_state: what is no pod is an error") {
  for (const auto* text :
       {"{}", "[]", "null", R"({"metadata": {"name": "p"}})",
        R"({"metadata": {"name": "p", "labels": {"PodCPUs": "x"}}, "spec": {"containers": [{}]}})"}) {
    CAPTURE(text);
    CHECK_FALSE(read_pod(Json::parse(text)).ok());
  }
}

TEST_CASE("pod_state: nodes, each size once") {
  const auto list = Json::parse(R"({"items": [
    {"status": {"allocatable": {"cpu": "7910m", "memory": "32Gi", "ephemeral-storage": "100000000", "pods": "110"}}},
    {"status": {"allocatable": {"cpu": "7910m", "memory": "32Gi", "ephemeral-storage": "100000000", "pods": "110"}}},
    {"status": {"allocatable": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}}},
    {}]})");
  const auto nodes = read_nodes(list, true);
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[1].cpu_milli == 7910);
  CHECK(nodes[1].memory_bytes == 32LL << 30);
  CHECK(nodes[2].gpus == 8);
  CHECK(nodes[2].disk_bytes > 1'000'000'000'000'000);
}

TEST_CASE("pod_state: where GPUs come by DRA, no node has too few") {
  const auto nodes =
      read_nodes(Json::parse(R"({"items": [{"status": {"allocatable": {"cpu": "64"}}}]})"), false);
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].gpus > 1'000'000);
}

TEST_CASE("pod_state: GPUs of another resource are counted in nodes and quotas as NVIDIA's are") {
  const std::set<std::string> devices = {"amd.com/gpu", "nvidia.com/mig-1g.5gb"};
  const auto list = Json::parse(R"({"items": [
    {"status": {"allocatable": {"cpu": "64", "memory": "64Gi", "amd.com/gpu": "4"}}},
    {"status": {"allocatable": {"cpu": "64", "memory": "64Gi", "nvidia.com/gpu": "8"}}},
    {"status": {"allocatable": {"cpu": "64", "memory": "64Gi", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "7"}}}]})");
  const auto wants = [](const char* name, std::int64_t number) {
    Resources pod{.cpu_milli = 1000, .memory_bytes = 1};
    pod.devices[name] = number;
    return pod;
  };
  const auto fit = [&](const Resources& pod, const std::vector<Resources>& nodes) {
    return std::ranges::count_if(nodes, [&pod](const auto& node) { return node.holds(pod, 1) > 0; });
  };
  const auto nodes = read_nodes(list, true, devices);
  REQUIRE(nodes.size() == 3);
  CHECK(fit(wants("amd.com/gpu", 4), nodes) == 1);
  CHECK(fit(wants("amd.com/gpu", 5), nodes) == 0);
  CHECK(fit(wants("nvidia.com/mig-1g.5gb", 7), nodes) == 1);
  CHECK(fit(wants("example.org/fpga", 7), nodes) == 3);  // nobody says that these are GPUs
  CHECK(fit(wants("amd.com/gpu", 5), read_nodes(list, false, devices)) == 1);  // of one size
  const auto quota = read_quotas(Json::parse(R"({"items": [
    {"status": {"hard": {"requests.amd.com/gpu": "6"}, "used": {"requests.amd.com/gpu": "2"}}},
    {"status": {"hard": {"requests.amd.com/gpu": "5", "pods": "9"}}}]})"),
                                 false, {""}, devices);
  REQUIRE(quota);
  CHECK(quota->hard.devices.at("amd.com/gpu") == 5);
  CHECK(quota->left.devices.at("amd.com/gpu") == 4);
  CHECK(quota->left.holds(wants("amd.com/gpu", 2), 9) == 2);
  CHECK(quota->left.minus(wants("amd.com/gpu", 2)).holds(wants("amd.com/gpu", 2), 9) == 1);
  CHECK(quota->left.holds(wants("nvidia.com/mig-1g.5gb", 7), 3) == 3);
  CHECK(wants("a/b", 1).widened_to(wants("a/b", 3)).devices.at("a/b") == 3);
  CHECK(Resources{}.widened_to(wants("a/b", 3)).devices.at("a/b") == 3);
}

TEST_CASE("pod_state: the tightest of the quotas counts, those with scopes do not") {
  const auto quota = read_quotas(Json::parse(R"({"items": [
    {"status": {"hard": {"requests.cpu": "10", "pods": "50"}, "used": {"requests.cpu": "4500m", "pods": "7"}}},
    {"status": {"hard": {"cpu": "8", "memory": "10Gi"}, "used": {"cpu": "1", "memory": "1Gi"}}},
    {"spec": {"scopes": ["BestEffort"]}, "status": {"hard": {"pods": "0"}}}]})"));
  REQUIRE(quota);
  CHECK(quota->hard.cpu_milli == 8000);
  CHECK(quota->left.cpu_milli == 5500);
  CHECK(quota->left.memory_bytes == 9LL << 30);
  CHECK(quota->left.pods == 43);
  CHECK(quota->left.gpus > 1'000'000);
  CHECK_FALSE(read_quotas(Json::parse(R"({"items": []})")));
}

TEST_CASE("pod_state: a quota's scopes say whether it counts pods like these") {
  const auto limits = [](const char* scopes, bool terminating) {
    return read_quotas(
               Json::parse(fmt::format(
                   R"({{"items": [{{"spec": {{"scopes": {}}}, "status": {{"hard": {{"pods": "5"}}}}}}]}})",
                   scopes)),
               terminating)
        .has_value();
  };
  CHECK(limits("[]", false));
  CHECK(limits(R"(["NotTerminating"])", false));
  CHECK_FALSE(limits(R"(["NotTerminating"])", true));
  CHECK(limits(R"(["Terminating", "NotBestEffort"])", true));
  CHECK_FALSE(limits(R"(["Terminating"])", false));
  CHECK_FALSE(limits(R"(["BestEffort"])", false));
  CHECK_FALSE(limits(R"(["PriorityClass"])", false));  // they name none
}

TEST_CASE("pod_state: quotas of what containers may use at most count, and those of a priority class") {
  const auto left = [](const char* spec, const std::set<std::string>& classes) -> std::int64_t {
    const auto quota = read_quotas(Json::parse(fmt::format(R"({{"items": [{{"spec": {}, "status": {{
        "hard": {{"limits.cpu": "10", "limits.memory": "10Gi"}}, "used": {{"limits.cpu": "4"}}}}}}]}})",
                                                           spec)),
                                   false, classes);
    return quota ? quota->left.limit_cpu_milli : -1;
  };
  CHECK(left("{}", {""}) == 6000);
  const Resources pod{
      .cpu_milli = 1000, .memory_bytes = 1, .limit_cpu_milli = 4000, .limit_memory_bytes = 5LL << 30};
  const auto quota = read_quotas(Json::parse(R"({"items": [{"status": {
      "hard": {"limits.cpu": "10", "limits.memory": "10Gi"}, "used": {"limits.cpu": "4"}}}]})"));
  REQUIRE(quota);
  CHECK(quota->left.holds(pod, 9) == 1);
  CHECK(quota->hard.holds(pod, 9) == 2);
  // A node has no limit of limits.
  const auto nodes = read_nodes(
      Json::parse(R"({"items": [{"status": {"allocatable": {"cpu": "64", "memory": "64Gi"}}}]})"), false);
  CHECK(nodes.at(0).holds(pod, 9) == 9);
  const auto* in = R"({"scopeSelector": {"matchExpressions": [
      {"scopeName": "PriorityClass", "operator": "In", "values": ["low", "middle"]}]}})";
  CHECK(left(in, {"low"}) == 6000);
  CHECK(left(in, {"low", "middle"}) == 6000);
  CHECK(left(in, {"low", "high"}) == -1);
  CHECK(left(in, {""}) == -1);
  const auto* not_in = R"({"scopeSelector": {"matchExpressions": [
      {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}, {"scopeName": "NotTerminating", "operator": "Exists"}]}})";
  CHECK(left(not_in, {"low"}) == 6000);
  CHECK(left(not_in, {"high"}) == -1);
  CHECK(left(R"({"scopes": ["PriorityClass"]})", {"low"}) == 6000);
  CHECK(left(R"({"scopes": ["CrossNamespacePodAffinity"]})", {"low"}) == -1);
}

TEST_CASE("pod_state: a pod has no job for certain while its pilot has not run, or crashes again and again") {
  const auto jobless = [](const char* phase, const std::string& pilot, const char* init = "[]") {
    return pod(fmt::format(R"({{"phase": "{}", "initContainerStatuses": {},
        "containerStatuses": [{{"name": "pilot"{}}}, {{"name": "payload-0", "state": {{"running": {{}}}}}}]}})",
                           phase, init, pilot))
        .jobless;
  };
  const auto* pulls = R"(, "state": {"waiting": {"reason": "ImagePullBackOff"}})";
  const auto* crashed = R"(, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
      "lastState": {"terminated": {"exitCode": 1}}, "restartCount": )";
  const auto* runs = R"(, "state": {"running": {"startedAt": "2026-01-01T00:05:00Z"}}, "restartCount": )";
  CHECK(pod(R"({"phase": "Pending"})", false).jobless);
  CHECK(pod(R"({"phase": "Pending"})").jobless);
  CHECK(jobless("Pending", pulls));
  CHECK(jobless("Pending", pulls, R"([{"name": "i", "state": {"terminated": {"exitCode": 0}}}])"));
  CHECK(jobless("Running", pulls));
  CHECK(jobless("Running", crashed + std::string("5")));
  // It may come back and be well.
  CHECK(!jobless("Running", crashed + std::string("4")));
  CHECK(!jobless("Running", runs + std::string("0")));
  CHECK(!jobless("Running", runs + std::string("5")));
  CHECK(!jobless("Pending", runs + std::string("0")));
  CHECK(!jobless("Running", R"(, "state": {"terminated": {"exitCode": 0}})"));
  CHECK(!jobless("Failed", pulls));
  CHECK(!pod(R"({"phase": "Running"})").jobless);
  CHECK(!pod(R"({"phase": "Pending"})", true, R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")").jobless);
}

TEST_CASE("pod_state: a pilot that crashes again and again gets no more time with each start") {
  const auto since = [](int restarts) {
    return pod(fmt::format(R"({{"phase": "Running", "containerStatuses": [{{"name": "pilot",
        "state": {{"running": {{"startedAt": "2026-01-01T00:05:00Z"}}}}, "restartCount": {}}}]}})",
                           restarts))
        .since;
  };
  CHECK(since(4) == k_created + Seconds(300));
  CHECK(since(5) == k_created);
}

TEST_CASE("pod_state: a pilot that ended well beside what never ends has not failed") {
  const auto state = [](const std::string& reason, const std::string& pilot) {
    return pod(fmt::format(R"({{"phase": "Failed", "reason": "{}", "containerStatuses": [
        {{"name": "mesh-proxy", "state": {{"terminated": {{"exitCode": 137}}}}}},
        {{"name": "pilot", "state": {}}}]}})",
                           reason, pilot))
        .state;
  };
  const char* well = R"({"terminated": {"exitCode": 0}})";
  CHECK(state("DeadlineExceeded", well) == PodState::succeeded);
  CHECK(state("Evicted", well) == PodState::failed);
  CHECK(state("DeadlineExceeded", R"({"terminated": {"exitCode": 1}})") == PodState::failed);
  CHECK(state("DeadlineExceeded", R"({"running": {}})") == PodState::failed);
}

TEST_CASE("pod_state: whose doing the end of a pod is") {
  const auto end = [](const std::string& status) { return pod(status).end; };
  for (const auto* reason :
       {"Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated", "OutOfcpu", "OutOfnvidia.com/gpu"})
    CHECK(end(fmt::format(R"({{"phase": "Failed", "reason": "{}"}})", reason)) == PodEnd::taken);
  for (const auto* phase : {"Failed", "Succeeded"}) {
    const auto disrupted = [&](const char* is) {
      return end(fmt::format(
          R"({{"phase": "{}", "conditions": [{{"type": "DisruptionTarget", "status": "{}"}}]}})", phase, is));
    };
    CHECK(disrupted("True") == PodEnd::taken);
    CHECK(disrupted("False") == PodEnd::own);
    const auto ended = fmt::format(R"({{"phase": "{}"}})", phase);
    CHECK(pod(ended).end == PodEnd::own);
    CHECK(pod(ended, true, R"(, "deletionTimestamp": "2026-11-21T05:00:00Z")").end == PodEnd::taken);
  }
  CHECK(end(R"({"phase": "Failed", "reason": "UnexpectedAdmissionError"})") == PodEnd::refused);
  CHECK(end(R"({"phase": "Failed", "containerStatuses": [
      {"name": "pilot", "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}]})") ==
        PodEnd::refused);
  CHECK(end(R"({"phase": "Failed", "containerStatuses": [
      {"name": "pilot", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]})") == PodEnd::own);
  CHECK(end(R"({"phase": "Failed", "reason": "DeadlineExceeded"})") == PodEnd::own);
  CHECK(end(R"({"phase": "Running", "reason": "Evicted"})") == PodEnd::own);
}
