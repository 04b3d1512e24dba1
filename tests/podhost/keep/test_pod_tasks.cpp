#include "podhost/keep/pod_tasks.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <deque>

#include "tests/podhost/pods.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::podhost;

namespace {

const Error k_away("podman: connection reset", ECONNREFUSED);

// Answers as told, one answer after the other; the last one stays.
class FakePodman : public Podman {
 public:
  std::deque<Result<ContainerInfo>> inspections;
  std::deque<Result<void>> removals{Result<void>{}};
  std::deque<Result<std::optional<PodInfo>>> pods;
  int calls = 0;
  std::vector<Json> updates;
  std::optional<ImageInfo> image;
  std::vector<std::string> pulled;
  int starts = 0;

  Result<std::optional<ImageInfo>> find_image(const std::string&) override { return image; }
  Result<void> pull(const std::string& name, const std::atomic<bool>&) override {
    pulled.push_back(name);
    return Error("unauthorized");
  }
  Result<std::string> run_pod(const Json&) override { return std::string(); }
  Result<std::optional<PodInfo>> find_pod(const std::string&) override { return next(pods); }
  Result<void> remove_pod(const std::string&) override { return {}; }
  Result<std::string> create_container(const Json&) override { return std::string(); }
  Result<void> init_container(const std::string&) override { return {}; }
  Result<void> start_container(const std::string&) override {
    ++starts;
    return {};
  }
  Result<void> update_container(const std::string&, const Json& limits) override {
    updates.push_back(limits);
    return {};
  }
  Result<ContainerInfo> inspect_container(const std::string&) override { return next(inspections); }
  Result<void> remove_container(const std::string&) override { return next(removals); }
  Result<std::vector<std::string>> list_containers(const std::string&) override {
    return std::vector<std::string>{"c"};
  }
  Result<std::vector<std::string>> list_pods(const std::string&) override {
    return std::vector<std::string>{"p"};
  }

 private:
  template <typename T>
  T next(std::deque<T>& answers) {
    ++calls;
    T answer = answers.front();
    if (answers.size() > 1) answers.pop_front();
    return answer;
  }
};

struct Scene {
  TemporaryFolder own;
  const std::string& folder = own.path;
  FakePodman podman;
  PodSpec spec = sample_spec(sample_pod());
  ContainerInfo ended;

  Scene() {
    ended.id = "c";
    ended.state = "exited";
    ended.exit_code = 7;
    ended.labels = {{label::k_uid, "u-1"}, {label::k_container, "pilot"}};
  }
  EndResult bury() {
    const PodFiles files(folder);
    const TaskTools tools{podman, files, folder};
    EndResult result = learn_end(tools, spec, spec.containers[0], "c", 0, Fd());
    bury_container(tools, spec.uid, "pilot", "c", 0);
    return result;
  }
};

}  // namespace

TEST_CASE("pod_tasks: an exit code is asked for until podman has answered") {
  Scene scene;
  scene.podman.inspections = {k_away, Error("podman", ETIMEDOUT), scene.ended};
  scene.podman.removals = {k_away, Result<void>{}};
  const EndResult result = scene.bury();
  CHECK(result.exit_code == 7);
  CHECK(result.reason == "Error");
  CHECK(scene.podman.calls == 5);
}

TEST_CASE("pod_tasks: an end that nobody saw is never a success") {
  Scene scene;
  ContainerInfo unseen = scene.ended;
  SUBCASE("podman does not know the container") {
    scene.podman.inspections = {Error("no such container")};
  }
  SUBCASE("podman believes it runs") {
    unseen.state = "running";
    unseen.exit_code = 0;
    scene.podman.inspections = {unseen};
  }
  SUBCASE("its conmon left no exit code") {
    unseen.exit_code = -1;
    scene.podman.inspections = {unseen};
  }
  const EndResult result = scene.bury();
  CHECK(result.exit_code == 137);
  CHECK(result.reason == "ContainerStatusUnknown");
}

TEST_CASE("pod_tasks: podhost's own end is not waited for podman") {
  Scene scene;
  scene.podman.inspections = {Error("podman", ECANCELED)};
  scene.podman.removals = {Error("podman", ECANCELED)};
  CHECK(scene.bury().reason == "ContainerStatusUnknown");
  CHECK(scene.podman.calls == 2);
}

TEST_CASE("pod_tasks: an inventory leaves out what vanishes, but fails if podman does not answer") {
  Scene scene;
  scene.podman.inspections = {scene.ended};
  auto found = find_pods(scene.podman, "/state");
  REQUIRE(found);
  REQUIRE(found.value().pods.at("u-1").containers.size() == 1);
  CHECK_FALSE(found.value().pods.at("u-1").containers[0].process);
  CHECK_FALSE(found.value().pods.at("u-1").infra);
  CHECK(found.value().podman_pods == std::vector<std::string>{"p"});
  scene.podman.inspections = {Error("no such container").with(PodmanLacks{})};
  CHECK(find_pods(scene.podman, "/state").value().pods.empty());
  CHECK(scene.podman.calls == 2);
  scene.podman.inspections = {k_away};
  CHECK_FALSE(find_pods(scene.podman, "/state"));
}

TEST_CASE("pod_tasks: a container that podman fails to tell of is not taken for removed at once") {
  Scene scene;
  scene.podman.inspections = {Error("database is locked"), Error("database is locked"), scene.ended};
  CHECK(find_pods(scene.podman, "/state").value().pods.at("u-1").containers.size() == 1);
  scene.podman.calls = 0;
  scene.podman.inspections = {Error("database is locked")};
  CHECK(find_pods(scene.podman, "/state").value().pods.empty());
  CHECK(scene.podman.calls == 3);
}

TEST_CASE("pod_tasks: a process that cannot be looked at has not ended") {
  Scene scene;
  ContainerInfo running = scene.ended;
  running.state = "running";
  running.pid = ::getpid();
  scene.podman.inspections = {running, Error("database is locked")};
  CHECK_FALSE(find_pods(scene.podman, "/state"));
  scene.podman.inspections = {running, Error("no such container").with(PodmanLacks{})};
  CHECK_FALSE(find_pods(scene.podman, "/state").value().pods.at("u-1").containers[0].process);
  scene.podman.inspections = {running};
  CHECK(find_pods(scene.podman, "/state").value().pods.at("u-1").containers[0].process);
}

TEST_CASE("pod_tasks: a local image is used by its digest only where its repository is the one named") {
  Scene scene;
  const std::string digest = "@sha256:" + std::string(64, 'd');
  scene.podman.image = ImageInfo{"f00", {"docker.io/alice/private" + digest}, ""};
  const auto reason = [&](const std::string& repository, PullPolicy policy = PullPolicy::if_not_present) {
    scene.spec.containers[0].image = repository + digest;
    scene.spec.containers[0].pull_policy = policy;
    const PodFiles files(scene.folder);
    const auto made = prepare_container({scene.podman, files, scene.folder}, scene.spec,
                                        scene.spec.containers[0], {}, 0, "name", false);
    return made ? "" : made.error().fact<NotPrepared>()->reason;
  };
  CHECK(reason("docker.io/mallory/any") == "ErrImagePull");
  CHECK(scene.podman.pulled == std::vector<std::string>{"docker.io/mallory/any" + digest});
  CHECK(reason("docker.io/mallory/any", PullPolicy::never) == "ErrImageNeverPull");
  CHECK(reason("alice/private") != "ErrImagePull");
  CHECK(reason("docker.io/alice/private:1") != "ErrImagePull");
  CHECK(scene.podman.pulled.size() == 1);
}

TEST_CASE("pod_tasks: whether a pod exists is known only from podman") {
  Scene scene;
  scene.podman.pods = {k_away, std::optional<Podman::PodInfo>()};
  CHECK(has_pod(scene.podman, "p").value() == false);
  scene.podman.pods = {std::optional(Podman::PodInfo{"id", "/c/id"})};
  CHECK(has_pod(scene.podman, "p").value());
}

TEST_CASE("pod_tasks: a container that may have been started is not started again") {
  Scene scene;
  CHECK(start_container(scene.podman, "c", false));
  CHECK(scene.podman.starts == 1);
  scene.podman.inspections = {scene.ended};
  CHECK(start_container(scene.podman, "c", true));
  CHECK(scene.podman.starts == 1);
  scene.ended.state = "initialized";
  scene.podman.inspections = {scene.ended};
  CHECK(start_container(scene.podman, "c", true));
  CHECK(scene.podman.starts == 2);
  scene.podman.inspections = {k_away};
  CHECK_FALSE(start_container(scene.podman, "c", true));
  CHECK(scene.podman.starts == 2);
}

TEST_CASE("pod tasks: a resize is podman's update, with all limits") {
  FakePodman podman;
  const Resources resources{.cpu_limit_milli = 1500, .cpu_request_milli = 500, .memory_limit = 1 << 20};
  PodFiles files("/nowhere");
  podman.inspections.emplace_back(ContainerInfo{});
  CHECK(resize_container({podman, files, "/nowhere", 99}, "id", resources).ok());
  REQUIRE(podman.updates.size() == 1);
  podman.updates[0]["memory"].erase("swap");  // where this machine limits it
  CHECK(podman.updates[0] == Json::parse(R"({"cpu": {"quota": 150000, "period": 100000, "shares": 512},
                                             "memory": {"limit": 1048576}, "pids": {"limit": 99}})"));
}
