#include "podhost/keep/pod_status.hpp"

#include <doctest/doctest.h>

#include "lib/base/time.hpp"
#include "tests/podhost/pods.hpp"

using namespace glidepod::podhost;

namespace {

const Time k_start = Time{} + std::chrono::hours(500000);

struct Scene {
  PodSpec spec;
  PodState state;
  Json before = Json::object();
  Time now = k_start;

  Scene() : spec(sample_spec(sample_pod())) {
    state.sandbox = Sandbox::ready;
    state.started = k_start;
    for (const auto& container : spec.containers) state.containers.push_back({.name = container.name});
  }
  Run run(std::size_t index) const {
    Run result;
    result.id = "0123";
    result.image = spec.containers[index].image;
    result.image_id = "repo@sha256:1";
    result.started = k_start;
    return result;
  }
  Run ended(std::size_t index, int code) const {
    Run result = run(index);
    result.state = Run::State::ended;
    result.exit_known = true;
    result.exit_code = code;
    result.reason = code == 0 ? "Completed" : "Error";
    result.finished = k_start;
    return result;
  }
  void start(std::size_t index) {
    state.containers[index].run = run(index);
    ++state.containers[index].started;
  }
  Json status() const { return make_status(spec, state, before, {"192.0.2.1"}, {}, now); }
  Json container(std::size_t index) const { return status()["containerStatuses"][index]; }
};

Json condition(const Json& status, const std::string& type) {
  for (const auto& one : status["conditions"]) {
    if (one["type"] == type) return one;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("pod_status: a pod that is being created") {
  const Scene scene;
  const Json status = scene.status();
  CHECK(status["phase"] == "Pending");
  CHECK(status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating");
  CHECK(condition(status, "Ready")["reason"] == "ContainersNotReady");
  CHECK(condition(status, "Ready")["message"] == "containers with unready status: [pilot payload-0]");
}

TEST_CASE("pod_status: a pod that runs") {
  Scene scene;
  scene.start(0);
  scene.start(1);
  const Json status = scene.status();
  CHECK(status["phase"] == "Running");
  CHECK(status["hostIP"] == "192.0.2.1");
  CHECK(condition(status, "Ready")["status"] == "True");
  const Json& container = status["containerStatuses"][1];
  CHECK(container["containerID"] == "podman://0123");
  CHECK(container["imageID"] == "repo@sha256:1");
  CHECK(container["state"]["running"]["startedAt"] == glidepod::time_text(k_start));
  CHECK(container["restartCount"] == 0);
}

TEST_CASE("pod_status: a container that crashed waits in CrashLoopBackOff") {
  Scene scene;
  scene.start(0);
  scene.start(1);
  auto& container = scene.state.containers[1];
  container.run = scene.ended(1, 3);
  container.restart_backoff["dummy:1"] = {Seconds(80), k_start};
  const Json status = scene.container(1);
  CHECK(status["state"]["waiting"]["reason"] == "CrashLoopBackOff");
  CHECK(status["state"]["waiting"]["message"] ==
        "back-off 1m20s restarting failed container=payload-0 pod=p_ns(u-1)");
  CHECK(status["lastState"]["terminated"]["exitCode"] == 3);
  CHECK(scene.status()["phase"] == "Running");
}

TEST_CASE("pod_status: a pull error is shown with the registry's words, then as a back-off") {
  Scene scene;
  Next next;
  next.state = Next::State::failed;
  next.image = "dummy:1";
  next.reason = "ErrImagePull";
  next.message = "manifest unknown";
  next.failed_at = k_start;
  scene.state.containers[1].next = next;
  CHECK(scene.container(1)["state"]["waiting"] ==
        Json{{"reason", "ErrImagePull"}, {"message", "manifest unknown"}});
  CHECK(status_changes_at(scene.state, k_start) == k_start + k_pull_error_shown);
  scene.now += k_pull_error_shown;
  CHECK(scene.container(1)["state"]["waiting"]["reason"] == "ImagePullBackOff");
  CHECK(scene.container(1)["state"]["waiting"]["message"] ==
        "Back-off pulling image \"dummy:1\": ErrImagePull: manifest unknown");
}

TEST_CASE("pod_status: a container that could not start") {
  Scene scene;
  auto& container = scene.state.containers[1];
  container.run = scene.ended(1, 128);
  container.run->reason = "StartError";
  container.run->message = "exec: not found";
  container.started = 1;
  container.restart_backoff["dummy:1"] = {Seconds(10), k_start};
  CHECK(scene.container(1)["state"]["waiting"] ==
        Json{{"reason", "RunContainerError"}, {"message", "exec: not found"}});
  scene.spec.restart_policy = RestartPolicy::never;
  CHECK(scene.container(1)["state"]["terminated"]["reason"] == "StartError");
}

TEST_CASE("pod_status: the phase of a pod whose containers have ended") {
  struct Row {
    RestartPolicy policy;
    int first, second;
    const char* phase;
  };
  for (const auto& row :
       {Row{RestartPolicy::never, 0, 0, "Succeeded"}, Row{RestartPolicy::never, 0, 1, "Failed"},
        Row{RestartPolicy::on_failure, 0, 0, "Succeeded"}, Row{RestartPolicy::on_failure, 0, 1, "Running"},
        Row{RestartPolicy::always, 0, 0, "Running"}}) {
    Scene scene;
    scene.spec.restart_policy = row.policy;
    scene.state.containers[0].run = scene.ended(0, row.first);
    scene.state.containers[1].run = scene.ended(1, row.second);
    CHECK(scene.status()["phase"] == row.phase);
  }
}

TEST_CASE("pod_status: sidecars are ready or not, and the phase is that of what they are beside") {
  Scene scene;
  scene.spec.restart_policy = RestartPolicy::never;
  scene.spec.init_containers.push_back(scene.spec.containers[1]);
  scene.spec.init_containers[0].name = "beside";
  scene.spec.init_containers[0].sidecar = true;
  scene.spec.init_containers[0].resources.memory_limit = 1 << 30;
  scene.state.init_containers.push_back({.name = "beside"});
  const auto beside = [&] { return scene.status()["initContainerStatuses"][0]; };
  CHECK(scene.status()["phase"] == "Pending");
  CHECK(condition(scene.status(), "Initialized")["status"] == "False");

  auto& sidecar = scene.state.init_containers[0];
  sidecar.run = scene.run(1);
  CHECK(scene.status()["phase"] == "Pending");
  CHECK(condition(scene.status(), "Initialized")["status"] == "True");
  CHECK(beside()["ready"] == true);
  CHECK(beside()["resources"]["limits"]["memory"] == "1Gi");

  for (const std::size_t i : {0U, 1U}) scene.start(i);
  CHECK(scene.status()["phase"] == "Running");
  CHECK(condition(scene.status(), "Ready")["status"] == "True");
  sidecar.run = scene.ended(1, 1);
  CHECK(scene.status()["phase"] == "Running");
  CHECK(condition(scene.status(), "Initialized")["status"] == "True");
  CHECK(condition(scene.status(), "Ready")["status"] == "False");
  CHECK(beside()["state"].contains("waiting"));
  CHECK(beside()["lastState"]["terminated"]["exitCode"] == 1);

  sidecar.run = scene.run(1);
  for (const std::size_t i : {0U, 1U}) scene.state.containers[i].run = scene.ended(i, 0);
  CHECK(scene.status()["phase"] == "Running");  // until it has ended too
  sidecar.run = scene.ended(1, 143);
  CHECK(scene.status()["phase"] == "Succeeded");
  CHECK(beside()["state"]["terminated"]["exitCode"] == 143);
  scene.state.containers[0].run = scene.ended(0, 1);
  CHECK(scene.status()["phase"] == "Failed");
}

TEST_CASE("pod_status: a condition's transition time stays while it does not change") {
  Scene scene;
  scene.start(0);
  scene.before = scene.status();
  scene.now += Seconds(60);
  CHECK(condition(scene.status(), "ContainersReady")["lastTransitionTime"] == glidepod::time_text(k_start));
  CHECK(condition(scene.status(), "PodScheduled")["lastTransitionTime"] == glidepod::time_text(k_start));
  scene.start(1);
  CHECK(condition(scene.status(), "ContainersReady")["lastTransitionTime"] == glidepod::time_text(scene.now));
}

TEST_CASE("pod_status: runs are recalled from a status") {
  Scene scene;
  scene.start(0);
  scene.state.containers[0].run = scene.ended(0, 0);
  scene.spec.restart_policy = RestartPolicy::on_failure;
  scene.start(1);
  scene.state.containers[1].previous = scene.ended(1, 7);
  scene.state.containers[1].started = 3;
  PodState recalled;
  for (const auto& container : scene.spec.containers) recalled.containers.push_back({.name = container.name});
  recall_runs(scene.spec, scene.status(), &recalled);
  REQUIRE(recalled.containers[0].run);
  CHECK(recalled.containers[0].run->exit_code == 0);
  CHECK(recalled.containers[0].run->id == "0123");
  // Unless podman still has it, nobody will know how it ended.
  REQUIRE(recalled.containers[1].run);
  CHECK(recalled.containers[1].run->state == Run::State::ended);
  CHECK(recalled.containers[1].run->exit_code == 137);
  CHECK(recalled.containers[1].run->reason == "ContainerStatusUnknown");
  CHECK(recalled.containers[1].previous->exit_code == 7);
  CHECK(recalled.containers[1].started == 3);
  CHECK(recalled.started == k_start);
}

TEST_CASE("pod_status: a pod that failed as a whole says why, also to a later podhost") {
  Scene scene;
  scene.start(0);
  scene.state.failure = PodFailure{"NodeLost", "why"};
  const Json status = scene.status();
  CHECK(status["phase"] == "Failed");
  CHECK(status["reason"] == "NodeLost");
  CHECK(status["message"] == "why");
  PodState recalled;
  recall_runs(scene.spec, status, &recalled);
  REQUIRE(recalled.failure);
  CHECK(recalled.failure->reason == "NodeLost");
  CHECK(recalled.failure->message == "why");
}

TEST_CASE("pod_status: what a container has is what is in force, beside what it is to have") {
  Scene scene;
  const Resources had{
      .cpu_limit_milli = 2000, .cpu_request_milli = 500, .memory_limit = 2 << 20, .memory_request = 1000};
  scene.spec.containers[1].resources = had;
  CHECK_FALSE(scene.container(1).contains("resources"));
  scene.start(1);
  CHECK(scene.container(1)["resources"] ==
        Json::parse(
            R"({"limits": {"cpu": "2", "memory": "2Mi"}, "requests": {"cpu": "500m", "memory": "1000"}})"));
  scene.state.containers[1].run->resources = had;
  scene.spec.containers[1].resources.cpu_request_milli = 100;
  const Json told = scene.status();
  CHECK(told["containerStatuses"][1]["resources"]["requests"]["cpu"] == "500m");
  CHECK(told["containerStatuses"][1]["allocatedResources"] ==
        Json::parse(R"({"cpu": "100m", "memory": "1000"})"));
  CHECK(condition(told, "PodResizeInProgress")["status"] == "True");
  scene.state.containers[1].run->resize_error = "in use";
  CHECK(condition(scene.status(), "PodResizeInProgress")["message"] == "in use");
  // The next podhost knows it.
  PodState state;
  for (const auto& container : scene.spec.containers) state.containers.push_back({.name = container.name});
  recall_runs(scene.spec, told, &state);
  CHECK(*state.containers[1].run->resources == had);
  scene.state.containers[1].run->resources = scene.spec.containers[1].resources;
  CHECK(condition(scene.status(), "PodResizeInProgress").is_null());
}
