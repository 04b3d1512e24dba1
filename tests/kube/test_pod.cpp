#include "lib/kube/pod.hpp"

#include <doctest/doctest.h>

#include "lib/kube/wait_reason.hpp"
#include "lib/kube/watch_event.hpp"

using namespace glidepod;
using namespace glidepod::kube;

namespace {
constexpr const char* k_pod = R"({
  "kind": "Pod", "metadata": {"name": "pilot-1", "uid": "u-1", "resourceVersion": "42", "labels": {"a": "b"}},
  "spec": {"containers": [
    {"name": "pilot", "image": "reg.example/pilot:1"},
    {"name": "payload-0", "image": "alpine:3.19", "command": ["/glidepod/bin/glue", "--container", "payload-0"],
     "resources": {"limits": {"cpu": "2", "memory": "128Mi"}, "requests": {"memory": "1Mi"}}}]},
  "status": {"containerStatuses": [
    {"name": "pilot", "restartCount": 0, "image": "reg.example/pilot:1", "imageID": "reg.example/pilot@sha256:aa",
     "containerID": "containerd://1", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "lastState": {}},
    {"name": "payload-0", "restartCount": 3, "image": "alpine:3.19", "imageID": "", "containerID": null,
     "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
     "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "signal": 9}}}]}})";
}

TEST_CASE("pod: the fields a pilot needs") {
  const Pod pod = parse_pod(k_pod).value();
  CHECK(pod.name == "pilot-1");
  CHECK(pod.uid == "u-1");
  CHECK(pod.resource_version == "42");
  CHECK(pod.restarts);
  CHECK(parse_pod(R"({"spec": {"restartPolicy": "OnFailure"}})")->restarts);
  CHECK_FALSE(parse_pod(R"({"spec": {"restartPolicy": "Never"}})")->restarts);
  CHECK(pod.container("payload-0")->command.at(0) == "/glidepod/bin/glue");
  CHECK(pod.container("payload-0")->size.limit.memory == 128 << 20);
  CHECK(pod.container("pilot")->size.limit.memory == 0);
  CHECK(pod.container("payload-1") == nullptr);
  CHECK(pod.status("pilot")->state == ContainerStatus::State::running);
  CHECK(pod.status("pilot")->container_id == "containerd://1");
  const ContainerStatus& payload = *pod.status("payload-0");
  CHECK(payload.state == ContainerStatus::State::waiting);
  CHECK(payload.reason == "ErrImagePull");
  CHECK(payload.message == "not found");
  CHECK(payload.restart_count == 3);
  CHECK(payload.last_terminated->reason == "OOMKilled");
  CHECK(payload.last_terminated->exit_code == 137);
  CHECK_FALSE(payload.terminated.has_value());
}

TEST_CASE("pod: the pilot's container is the one of that name, and the first where none has it") {
  Pod pod;
  CHECK(pod.pilot() == nullptr);
  pod.containers = {{"proxy", "p:1", {}}, {"payload-0", "g:1", {}}};
  CHECK(pod.pilot()->name == "proxy");
  pod.containers.push_back({"pilot", "g:1", {}});
  CHECK(pod.pilot()->name == "pilot");
}

TEST_CASE("pod: sidecars are containers like others, and what ends before they start is none") {
  const auto pod = parse_pod(R"({"metadata": {"resourceVersion": "4"}, "spec": {
    "containers": [{"name": "pilot", "image": "p:1"}],
    "initContainers": [{"name": "install", "image": "p:1"},
      {"name": "payload-0", "image": "g:1", "restartPolicy": "Always", "command": ["/glidepod/bin/glue"]},
      {"name": "payload-1", "image": "g:2", "restartPolicy": "Always"}]},
    "status": {"containerStatuses": [{"name": "pilot"}], "initContainerStatuses": [
      {"name": "install", "state": {"terminated": {"exitCode": 0}}},
      {"name": "payload-0", "restartCount": 2, "state": {"running": {}}}]}})");
  REQUIRE(pod.ok());
  REQUIRE(pod->containers.size() == 3);
  CHECK(pod->container("install") == nullptr);
  CHECK(pod->status("install") == nullptr);
  CHECK_FALSE(pod->pilot()->sidecar);
  const ContainerSpec& last = *pod->container("payload-1");
  CHECK(last.sidecar);
  CHECK(last.place == 2);
  CHECK(pod->status("payload-0")->restart_count == 2);
  CHECK(image_patch({last.place, last.name, "g:2", "x", {}, last.sidecar}) ==
        R"([{"op":"test","path":"/spec/initContainers/2/name","value":"payload-1"},)"
        R"({"op":"test","path":"/spec/initContainers/2/image","value":"g:2"},)"
        R"({"op":"replace","path":"/spec/initContainers/2/image","value":"x"}])");
  CHECK(size_patch(*pod, {{"payload-0", {{1, 1}, {1, 1}}}})
            ->starts_with(R"([{"op":"test","path":"/metadata/resourceVersion","value":"4"},)"
                          R"({"op":"test","path":"/spec/initContainers/1/name","value":"payload-0"},)"
                          R"({"op":"add","path":"/spec/initContainers/1/resources/)"));
  for (const char* wrong : {R"({"spec":{"initContainers":{}}})", R"({"spec":{"initContainers":[7]}})",
                            R"({"spec":{"initContainers":[{"restartPolicy":1}]}})",
                            R"({"status":{"initContainerStatuses":[7]}})"})
    CHECK_FALSE(parse_pod(wrong).ok());
}

TEST_CASE("pod: a memory limit is read as Kubernetes writes it, and one that cannot be read is none") {
  const auto limit = [](const std::string& memory) {
    const auto pod =
        parse_pod(R"({"spec":{"containers":[{"resources":{"limits":{"memory":)" + memory + "}}}]}}");
    return pod.value().containers.at(0).size.limit.memory;
  };
  CHECK(limit("\"1Gi\"") == 1 << 30);
  CHECK(limit("\"1500M\"") == 1'500'000'000);
  CHECK(limit("\"128974848000m\"") == 128'974'848);
  CHECK(limit("134217728") == 134'217'728);
  for (const char* none : {"null", "\"0\"", "\"\"", "\"much\"", "\"-1Gi\"", "-5"}) CHECK(limit(none) == 0);
}

TEST_CASE("pod: sizes, what is in force of them, and what the pod was made with") {
  const Pod pod = parse_pod(R"({"metadata": {"generation": 7, "annotations": {
      "glidepod.io/requests.cpu": "1500m", "glidepod.io/requests.memory": "1Gi",
      "glidepod.io/limits.cpu": "4", "glidepod.io/limits.memory": "2Gi"}},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": 1, "memory": "1Mi"},
      "limits": {"cpu": "1500m", "memory": 4096}}}]},
    "status": {"observedGeneration": 6,
      "conditions": [{"type": "Ready", "status": "True"},
        {"type": "PodResizePending", "status": "True", "reason": "Deferred", "observedGeneration": 7}],
      "containerStatuses": [{"name": "a", "resources": {"limits": {"cpu": "250m", "memory": "2Mi"}}}]}})")
                      .value();
  CHECK(pod.container("a")->size == Size{{1000, 1 << 20}, {1500, 4096}});
  CHECK(pod.status("a")->size == Size{{}, {250, 2 << 20}});
  CHECK(pod.payload_size == Size{{1500, 1 << 30}, {4000, std::int64_t{2} << 30}});
  CHECK(pod.generation == 7);
  CHECK(pod.observed_generation == 6);
  CHECK(pod.pending_resize->reason == "Deferred");
  CHECK(pod.pending_resize->generation == 7);
  const Pod bare = parse_pod(R"({"metadata": {"annotations": {"glidepod.io/requests.cpu": "1"}},
    "status": {"conditions": [{"type": "PodResizePending", "status": "False"}]}})")
                       .value();
  CHECK_FALSE(bare.payload_size);
  CHECK_FALSE(bare.pending_resize);
}

TEST_CASE("pod: what is missing or null is empty, what is of another type is named") {
  CHECK(parse_pod("{}").value().containers.empty());
  CHECK(parse_pod(R"({"metadata":null,"spec":{"containers":null},"status":null})").ok());
  for (const char* text :
       {"",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{",
        R"({"metadata":[]})",
        R"({"metadata":{"name":7}})",
        R"({"spec":"x"})",
        R"({"spec":{"containers":{}}})",
        R"({"spec":{"containers":[7]}})",
        R"({"spec":{"containers":[{"command":[1]}]}})",
        R"({"spec":{"containers":[{"resources":[]}]}})",
        R"({"spec":{"containers":[{"resources":{"limits":7}}]}})",
        R"({"spec":{"containers":[{"resources":{"limits":{"memory":[]}}}]}})",
        R"({"status":{"containerStatuses":[null]}})",
        R"({"status":{"containerStatuses":[{"restartCount":"3"}]}})",
        R"({"status":{"containerStatuses":[{"restartCount":1.5}]}})",
        R"({"status":{"containerStatuses":[{"state":[]}]}})",
        R"({"status":{"containerStatuses":[{"state":{"terminated":{"exitCode":"1"}}}]}})"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_pod(text).ok());
    CHECK(parse_pod(text).error().message().starts_with("pod: "));
  }
  CHECK(parse_pod("{\"metadata\":{\"name\":\"\xff\"}}").ok() == false);
  CHECK_FALSE(parse_pod(std::string(100'000, '[')).ok());
}

TEST_CASE("pod: events of a watch") {
  CHECK(parse_watch_event(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"5"}}})")
            .value()
            .version == "5");
  CHECK(parse_watch_event(R"({"type":"DELETED","object":{}})").value().type == WatchEvent::Type::deleted);
  CHECK(parse_watch_event(R"({"type":"BOOKMARK","object":{}})").value().type == WatchEvent::Type::bookmark);
  const auto error =
      parse_watch_event(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})")
          .value();
  CHECK(error.type == WatchEvent::Type::error);
  CHECK(error.object["code"] == 410);
  for (const char* text : {"{}", R"({"type":"ADDED"})", R"({"type":"NEW","object":{}})",
                           R"({"type":1,"object":{}})", "[]", R"({"type":"ERROR","object":[]})"})
    CHECK_FALSE(parse_watch_event(text).ok());
}

TEST_CASE("pod: a Status and its wish to be asked later") {
  const auto status =
      parse_status(
          R"({"kind":"Status","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":2}})")
          .value();
  CHECK(status.retry_after_seconds == 2);
  CHECK_FALSE(parse_status(R"({"kind":"Pod"})").ok());
}

TEST_CASE("pod: the patch touches one image, whatever is in the names") {
  CHECK(image_patch({3, "a\"b", "old", "x\xff"}) ==
        R"([{"op":"test","path":"/spec/containers/3/name","value":"a\"b"},)"
        R"({"op":"test","path":"/spec/containers/3/image","value":"old"},)"
        "{\"op\":\"replace\",\"path\":\"/spec/containers/3/image\",\"value\":\"x\xef\xbf\xbd\"}]");
}

TEST_CASE("pod: what an imageID tells") {
  CHECK(digest_of("docker.io/library/a@sha256:12") == "sha256:12");
  CHECK(repository_of("docker.io/library/a@sha256:12") == "docker.io/library/a");
  CHECK(repository_of("docker-pullable://a@sha256:12") == "a");
  CHECK(digest_of("sha256:12") == "");
  CHECK(digest_of("docker://sha256:12") == "");
  CHECK(repository_of("") == "");
  CHECK(repository_of("docker.io/library/a:1") == "");
}

TEST_CASE("pod: what a kubelet says of a container's end, of this run and of the one before") {
  const Pod pod = parse_pod(R"({"status": {"containerStatuses": [
      {"name": "a", "state": {"terminated": {"exitCode": 3, "signal": 9, "reason": "Error", "message": "m",
        "containerID": "c://1"}}},
      {"name": "b", "state": {}}, {"name": "c"}]}})")
                      .value();
  const ContainerStatus& ended = *pod.status("a");
  CHECK(ended.state == ContainerStatus::State::terminated);
  CHECK(ended.terminated->exit_code == 3);
  CHECK(ended.terminated->signal == 9);
  CHECK(ended.terminated->message == "m");
  CHECK(ended.terminated->container_id == "c://1");
  CHECK_FALSE(ended.last_terminated.has_value());
  CHECK(pod.status("b")->state == ContainerStatus().state);
  CHECK(pod.status("c")->state == ContainerStatus().state);
}

TEST_CASE(
    "pod: all four annotations make the payload's size, and one that is missing or nothing makes none") {
  const auto size = [](const char* cpu, const char* memory, const char* most_cpu, const char* most_memory) {
    const nlohmann::json pod = {{"metadata",
                                 {{"annotations",
                                   {{"glidepod.io/requests.cpu", cpu},
                                    {"glidepod.io/requests.memory", memory},
                                    {"glidepod.io/limits.cpu", most_cpu},
                                    {"glidepod.io/limits.memory", most_memory}}}}}};
    return pod_from(pod)->payload_size.has_value();
  };
  CHECK(size("1m", "1", "1m", "1"));
  CHECK_FALSE(size("0", "1", "1", "1"));
  CHECK_FALSE(size("1", "0", "1", "1"));
  CHECK_FALSE(size("1", "1", "0", "1"));
  CHECK_FALSE(size("1", "1", "1", "0"));
}

TEST_CASE("pod: only a resize that is pending now counts") {
  const auto pending = [](const char* type, const char* status) {
    const nlohmann::json pod = {
        {"status", {{"conditions", {{{"type", type}, {"status", status}, {"reason", "Infeasible"}}}}}}};
    return pod_from(pod)->pending_resize.has_value();
  };
  CHECK(pending("PodResizePending", "True"));
  CHECK_FALSE(pending("PodResizePending", "False"));
  CHECK_FALSE(pending("PodResizeInProgress", "True"));
}

TEST_CASE("pod: the time of grace, and secrets of its own, where the pod says so") {
  CHECK(parse_pod(R"({"spec": {"terminationGracePeriodSeconds": 77}})")->grace_seconds == 77);
  CHECK(parse_pod("{}")->grace_seconds == Pod().grace_seconds);
  CHECK(parse_pod(R"({"spec": {"imagePullSecrets": [{"name": "s"}]}})")->pull_secrets);
  CHECK_FALSE(parse_pod(R"({"spec": {"imagePullSecrets": []}})")->pull_secrets);
  CHECK_FALSE(parse_pod("{}")->pull_secrets);
}

TEST_CASE("pod: a version is a whole number, or none that could be compared") {
  CHECK(version_number("42") == 42);
  for (const char* none : {"", "x", "4x", "99999999999999999999"}) CHECK(version_number(none) == 0);
}

TEST_CASE("pod: an image's patch tests the pod's version where one is given") {
  ImageChange change{0, "a", "old", "new"};
  CHECK(image_patch(change).find("resourceVersion") == std::string::npos);
  change.version = "7";
  CHECK(image_patch(change).ends_with(R"({"op":"test","path":"/metadata/resourceVersion","value":"7"}])"));
}

TEST_CASE("pod: a patch of sizes tests the pod and each container, and sets requests and limits") {
  Pod pod;
  pod.resource_version = "7";
  pod.containers = {{.name = "a", .image = "i"}, {.name = "b", .image = "i", .place = 1}};
  CHECK(size_patch(pod, {{"b", {{1500, 1024}, {2000, 2048}}}}) ==
        R"([{"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
        R"({"op":"test","path":"/spec/containers/1/name","value":"b"},)"
        R"({"op":"add","path":"/spec/containers/1/resources/limits/cpu","value":"2000m"},)"
        R"({"op":"add","path":"/spec/containers/1/resources/limits/memory","value":"2048"},)"
        R"({"op":"add","path":"/spec/containers/1/resources/requests/cpu","value":"1500m"},)"
        R"({"op":"add","path":"/spec/containers/1/resources/requests/memory","value":"1024"}])");
  CHECK_FALSE(size_patch(pod, {{"c", {}}}).has_value());
}

TEST_CASE("pod: what a container waits for, by the kubelet's word") {
  CHECK(wait_reason_of("ErrImagePull") == WaitReason::pull);
  CHECK(wait_reason_of("InvalidImageName") == WaitReason::never);
  CHECK(wait_reason_of("RunContainerError") == WaitReason::create);
  CHECK(wait_reason_of("CreateContainerConfigError") == WaitReason::config);
  CHECK(wait_reason_of("CrashLoopBackOff") == WaitReason::back_off);
  CHECK(wait_reason_of("ContainerCreating") == WaitReason::other);
  CHECK(wait_reason_of("") == WaitReason::other);
  CHECK(never_started("StartError"));
  CHECK(never_started("ContainerCannotRun"));
  CHECK_FALSE(never_started("Error"));
}

TEST_CASE("pod: a JSON text of another kind is no pod object") {
  CHECK(pod_from(nlohmann::json::array()).error().message() == "pod: not a JSON object");
  CHECK(parse_status("[]").error().message() == "status: not a JSON object");
  CHECK(parse_status("{").error().message() == "status: malformed JSON");
}
