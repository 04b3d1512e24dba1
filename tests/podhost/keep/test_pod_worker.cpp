#include "podhost/keep/pod_worker.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <mutex>

#include "lib/base/child.hpp"
#include "tests/podhost/pods.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::podhost;

namespace {

Fd pidfd_of(pid_t pid) {
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// Has one container, which is as the test says. Called by worker threads.
class FakePodman : public Podman {
 public:
  ContainerInfo container;
  std::function<Result<void>()> start = [] { return Result<void>(); };

  std::vector<std::string> removed() const {
    const std::lock_guard lock(mutex_);
    return removed_;
  }

  Result<std::optional<ImageInfo>> find_image(const std::string&) override {
    return std::optional(ImageInfo{"f00", {}, ""});
  }
  Result<void> pull(const std::string&, const std::atomic<bool>&) override { return {}; }
  Result<std::string> run_pod(const Json&) override { return std::string(); }
  Result<std::optional<PodInfo>> find_pod(const std::string&) override { return std::optional<PodInfo>(); }
  Result<void> remove_pod(const std::string&) override {
    const std::lock_guard lock(mutex_);
    removed_.emplace_back("pod");
    return {};
  }
  Result<std::string> create_container(const Json&) override { return container.id; }
  Result<void> init_container(const std::string&) override { return {}; }
  Result<void> start_container(const std::string&) override {
    const std::lock_guard lock(mutex_);
    return start();
  }
  Result<void> update_container(const std::string&, const Json&) override { return {}; }
  Result<ContainerInfo> inspect_container(const std::string&) override {
    const std::lock_guard lock(mutex_);
    return container;
  }
  Result<void> remove_container(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    removed_.push_back(id);
    return {};
  }
  Result<std::vector<std::string>> list_containers(const std::string&) override {
    return std::vector<std::string>();
  }
  Result<std::vector<std::string>> list_pods(const std::string&) override {
    return std::vector<std::string>();
  }

 protected:
  mutable std::mutex mutex_;
  std::vector<std::string> removed_;
};

class NoSockets : public PodSockets {
 public:
  Result<void> open(const std::string&, const std::string&, std::optional<std::int64_t>) override {
    return {};
  }
  void close(const std::string&) override {}
};

Json pod_of_one() {
  Json pod = sample_pod();
  pod["spec"]["restartPolicy"] = "Never";
  pod["spec"]["containers"].erase(1);
  pod["spec"]["containers"][0]["volumeMounts"] = Json::array();
  return pod;
}

// A pod of one container, in a sandbox that runs.
struct Scene {
  TemporaryFolder own;
  PodFiles files{own.path};
  FakePodman podman;
  NoSockets sockets;
  Loop loop = Loop::create().value();
  std::unique_ptr<Inbox> inbox = Inbox::create(loop).value();
  Store store{files, 100, [](const std::string&) {}};
  std::unique_ptr<PodWorker> worker;
  std::optional<Workers> workers{std::in_place, 4};
  WorkerContext context{loop,
                        *inbox,
                        *workers,
                        store,
                        sockets,
                        TaskTools{podman, files, own.path},
                        BackoffRule{},
                        PodFacts{},
                        [this](const std::string&) { return worker.get(); },
                        [](const std::string&) {}};

  Scene() {
    podman.container.id = "c";
    podman.container.labels = {{label::k_uid, "u-1"}, {label::k_container, "pilot"}};
    REQUIRE(files.prepare());
    worker = std::make_unique<PodWorker>(context, store.create(pod_of_one()).value());
  }
  ~Scene() {
    workers.reset();
    worker.reset();
  }

  void adopt(std::vector<FoundContainer> containers) {
    FoundPod found;
    found.infra.emplace();
    found.infra->process = pidfd_of(getpid());
    found.containers = std::move(containers);
    worker->adopt(std::move(found));
    worker->sync();
  }
  template <typename Condition>
  void until(Condition condition) {
    const auto limit = Loop::now() + std::chrono::seconds(10);
    while (!condition() && Loop::now() < limit) REQUIRE(loop.run_once(Milliseconds(100)));
    REQUIRE(condition());
  }
  Json state() const { return store.find("u-1")->at("/status/containerStatuses/0/state"_json_pointer); }
  bool terminated() const {
    const Json status = store.find("u-1")->at("status");
    return status.contains("containerStatuses") && state().contains("terminated");
  }
  std::string saved_phase() const { return files.load().at(0)["status"]["phase"]; }
};

}  // namespace

TEST_CASE("pod_worker: a container is removed once its exit code is saved, and then the pod's sandbox") {
  Scene scene;
  scene.podman.container.state = "exited";
  scene.podman.container.exit_code = 0;
  // As on a full disk, also for root.
  const std::string hindrance = scene.files.folder("u-1") + "/status.json.new";
  std::filesystem::create_directory(hindrance);
  std::vector<FoundContainer> containers(1);
  containers[0].info = scene.podman.container;
  scene.adopt(std::move(containers));
  const std::string volumes = scene.files.folder("u-1") + "/volumes";
  scene.until([&] { return scene.terminated() && !std::filesystem::exists(volumes); });
  CHECK(scene.state()["terminated"]["exitCode"] == 0);
  scene.worker->sync();
  CHECK(scene.podman.removed().empty());
  CHECK(scene.saved_phase() == "Pending");
  std::filesystem::remove(hindrance);
  scene.worker->sync();
  CHECK(scene.saved_phase() == "Succeeded");
  scene.until([&] { return scene.podman.removed() == std::vector<std::string>{"c", "pod"}; });
}

TEST_CASE("pod_worker: a container that has ended after a start without an answer is not started again") {
  Scene scene;
  auto process = Child::fork([] { return pause(); });
  REQUIRE(process);
  scene.podman.container.state = "initialized";
  scene.podman.container.pid = process->pid();
  int starts = 0;
  bool seen = true;
  SUBCASE("podman has seen its end") {}
  SUBCASE("podman has not even seen its start") {
    seen = false;
  }
  scene.podman.start = [&]() -> Result<void> {
    ++starts;
    CHECK(process->signal(SIGKILL));
    CHECK(process->wait());
    if (seen) scene.podman.container.state = "exited";
    scene.podman.container.exit_code = 7;
    return Error("podman: connection reset", ECONNREFUSED);
  };
  scene.adopt({});
  scene.until([&] { return scene.terminated(); });
  CHECK(scene.state()["terminated"]["exitCode"] == (seen ? 7 : k_exit_unknown));
  CHECK(starts == 1);
}
