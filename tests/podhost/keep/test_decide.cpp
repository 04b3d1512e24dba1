#include "podhost/keep/decide.hpp"

#include <doctest/doctest.h>

using namespace glidepod::podhost;
using Kind = Action::Kind;

namespace {

const Time k_start = Time{} + std::chrono::hours(500000);

struct Scene {
  PodSpec spec;
  PodState state;
  BackoffRule rule;
  Time now = k_start;

  explicit Scene(int containers = 1, int init_containers = 0) {
    spec.name = "pod";
    spec.grace_seconds = 30;
    spec.restart_policy = RestartPolicy::on_failure;
    state.sandbox = Sandbox::ready;
    state.started = k_start;
    for (int i = 0; i < init_containers; ++i)
      add(spec.init_containers, state.init_containers, "i" + std::to_string(i));
    for (int i = 0; i < containers; ++i) add(spec.containers, state.containers, "c" + std::to_string(i));
  }
  static void add(std::vector<ContainerSpec>& specs, std::vector<ContainerState>& states,
                  const std::string& name) {
    ContainerSpec container;
    container.name = name;
    container.image = "old";
    specs.push_back(container);
    states.push_back({.name = name});
  }
  ContainerState& c(int i = 0) { return state.containers.at(static_cast<std::size_t>(i)); }
  ContainerState& init(int i = 0) { return state.init_containers.at(static_cast<std::size_t>(i)); }
  static Run running(const std::string& image = "old") {
    Run run;
    run.id = "id";
    run.image = image;
    run.started = k_start;
    return run;
  }
  static Run ended(int code, const std::string& image = "old") {
    Run run = running(image);
    run.state = Run::State::ended;
    run.exit_known = true;
    run.exit_code = code;
    run.finished = k_start;
    return run;
  }
  // The container is being stopped for another image, whose container has come this far.
  void replace_running(Next::State next_state) {
    spec.containers[0].image = "new";
    c().run = running();
    c().run->state = Run::State::stopping;
    c().run->replaced = true;
    c().run->kill_at = k_start + Seconds(30);
    c().next = next(next_state, "new");
  }
  static Next next(Next::State state, const std::string& image = "old") {
    Next result;
    result.state = state;
    result.image = image;
    return result;
  }
  Decision decide() const { return glidepod::podhost::decide(spec, state, rule, now); }
  std::vector<Kind> kinds() const {
    std::vector<Kind> result;
    for (const auto& action : decide().actions) result.push_back(action.kind);
    return result;
  }
};

using Kinds = std::vector<Kind>;

}  // namespace

TEST_CASE("decide: a new pod gets its sandbox first") {
  Scene scene;
  scene.state.sandbox = Sandbox::none;
  CHECK(scene.kinds() == Kinds{Kind::create_sandbox});
  scene.state.sandbox = Sandbox::creating;
  CHECK(scene.kinds().empty());
}

TEST_CASE("decide: a failed sandbox is cleared away when its time has come") {
  Scene scene;
  scene.state.sandbox = Sandbox::failed;
  scene.state.sandbox_retry_at = k_start + Seconds(10);
  CHECK(scene.kinds().empty());
  CHECK(scene.decide().wake_at == k_start + Seconds(10));
  scene.now += Seconds(10);
  CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
}

TEST_CASE("decide: init containers run one after the other, then all containers at once") {
  Scene scene(2, 2);
  auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].container == "i0");
  scene.init(0).run = Scene::running();
  CHECK(scene.kinds().empty());
  scene.init(0).run = Scene::ended(0);
  actions = scene.decide().actions;
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].container == "i1");
  scene.init(1).run = Scene::ended(0);
  CHECK(scene.kinds() == Kinds{Kind::prepare, Kind::prepare});
}

TEST_CASE("decide: a prepared container starts when nothing of it runs") {
  Scene scene;
  scene.c().next = Scene::next(Next::State::ready);
  CHECK(scene.kinds() == Kinds{Kind::start});
  scene.c().next->state = Next::State::starting;
  CHECK(scene.kinds().empty());
}

TEST_CASE("decide: a changed image stops the old container and prepares the new one at the same time") {
  Scene scene(2);
  scene.c(0).run = Scene::running();
  scene.c(1).run = Scene::running();
  scene.spec.containers[1].image = "new";
  const auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 2);
  CHECK(actions[0] == Action{.kind = Kind::stop, .container = "c1", .grace = Seconds(30), .replaced = true});
  CHECK(actions[1] == Action{.kind = Kind::prepare, .container = "c1"});
}

TEST_CASE("decide: the new container waits for the old one's end, and starts before its exit code is known") {
  Scene scene;
  scene.replace_running(Next::State::ready);
  CHECK(scene.kinds().empty());
  CHECK(scene.decide().wake_at == k_start + Seconds(30));
  scene.c().run->state = Run::State::ended;
  CHECK(scene.kinds() == Kinds{Kind::start});
}

TEST_CASE("decide: one that cannot be started does not hide the one that still runs") {
  Scene scene;
  scene.replace_running(Next::State::unstartable);
  CHECK(scene.kinds().empty());
  scene.now += Seconds(30);
  CHECK(scene.kinds() == Kinds{Kind::kill});
  scene.c().run->state = Run::State::ended;
  CHECK(scene.kinds() == Kinds{Kind::start});
}

TEST_CASE("decide: what outstays its grace period is killed") {
  Scene scene;
  scene.spec.containers[0].image = "new";
  scene.c().run = Scene::running();
  scene.c().run->state = Run::State::stopping;
  scene.c().run->kill_at = k_start + Seconds(30);
  scene.c().next = Scene::next(Next::State::preparing, "new");
  scene.now += Seconds(30);
  CHECK(scene.kinds() == Kinds{Kind::kill});
}

TEST_CASE("decide: an image changed again while one is prepared") {
  Scene scene;
  scene.spec.containers[0].image = "newer";
  scene.c().run = Scene::ended(3);
  scene.c().run->replaced = true;
  for (const auto state : {Next::State::preparing, Next::State::ready, Next::State::failed}) {
    scene.c().next = Scene::next(state, "new");
    CHECK(scene.kinds() == Kinds{Kind::discard, Kind::prepare});
  }
  scene.c().next = Scene::next(Next::State::starting, "new");
  CHECK(scene.kinds().empty());
}

TEST_CASE("decide: an image changed back while its container stops starts afresh at once") {
  Scene scene;
  scene.c().run = Scene::running();
  scene.c().run->state = Run::State::stopping;
  scene.c().run->replaced = true;
  scene.c().run->kill_at = k_start + Seconds(30);
  scene.c().next = Scene::next(Next::State::preparing, "new");
  CHECK(scene.kinds() == Kinds{Kind::discard});
  scene.c().next.reset();
  scene.c().run = Scene::ended(3);
  scene.c().run->replaced = true;
  scene.c().restart_backoff["old"] = {Seconds(300), k_start};
  CHECK(scene.kinds() == Kinds{Kind::prepare});
}

TEST_CASE("decide: restartPolicy") {
  struct Row {
    RestartPolicy policy;
    int code;
    bool again;
  };
  for (const auto& row : {Row{RestartPolicy::always, 0, true}, Row{RestartPolicy::always, 1, true},
                          Row{RestartPolicy::on_failure, 0, false}, Row{RestartPolicy::on_failure, 1, true},
                          Row{RestartPolicy::never, 0, false}, Row{RestartPolicy::never, 1, false}}) {
    Scene scene(2);
    scene.spec.restart_policy = row.policy;
    scene.c(0).run = Scene::ended(row.code);
    scene.c(1).run = Scene::running();
    CAPTURE(row.code);
    CHECK(scene.kinds() == (row.again ? Kinds{Kind::prepare} : Kinds{}));
  }
}

TEST_CASE("decide: nothing restarts before its exit code is known") {
  Scene scene;
  scene.c().run = Scene::ended(1);
  scene.c().run->exit_known = false;
  CHECK(scene.kinds().empty());
}

TEST_CASE("decide: the back-off counts by image string and spares a changed image") {
  Scene scene;
  scene.c().run = Scene::ended(1);
  auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].restart);
  scene.c().restart_backoff["old"] = {Seconds(20), k_start};
  CHECK(scene.kinds().empty());
  CHECK(scene.decide().wake_at == k_start + Seconds(20));
  scene.now += Seconds(20);
  CHECK(scene.kinds() == Kinds{Kind::prepare});
  scene.now = k_start;
  scene.spec.containers[0].image = "new";
  actions = scene.decide().actions;
  REQUIRE(actions.size() == 1);
  CHECK_FALSE(actions[0].restart);
}

TEST_CASE("decide: the back-off doubles to its limit and is forgotten after twice that") {
  const BackoffRule rule;
  Backoff backoff;
  std::vector<long> delays;
  Time now = k_start;
  for (int i = 0; i < 7; ++i) {
    count_restart(backoff, now, now, rule);
    delays.push_back(backoff.delay.count());
    now += backoff.delay;
  }
  CHECK(delays == std::vector<long>{10, 20, 40, 80, 160, 300, 300});
  now += Seconds(601);
  count_restart(backoff, now, now, rule);
  CHECK(backoff.delay == Seconds(10));
}

TEST_CASE("decide: a failed preparation is tried again at its time, or never") {
  Scene scene;
  scene.c().next = Scene::next(Next::State::failed);
  CHECK(scene.kinds().empty());
  CHECK_FALSE(scene.decide().wake_at);
  scene.c().next->retry_at = k_start + Seconds(10);
  CHECK(scene.decide().wake_at == k_start + Seconds(10));
  scene.now += Seconds(10);
  CHECK(scene.kinds() == Kinds{Kind::discard, Kind::prepare});
}

TEST_CASE("decide: deletion stops everything, then tears down, then forgets") {
  Scene scene(2);
  scene.c(0).run = Scene::running();
  scene.c(1).run = Scene::ended(0);
  scene.c(1).next = Scene::next(Next::State::ready);
  scene.state.deleting = Seconds(7);
  const auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 2);
  CHECK(actions[0] == Action{.kind = Kind::stop, .container = "c0", .grace = Seconds(7)});
  CHECK(actions[1] == Action{.kind = Kind::discard, .container = "c1"});
  scene.c(1).next.reset();
  scene.c(0).run = Scene::ended(3);
  scene.state.tasks = 1;
  CHECK(scene.kinds().empty());
  scene.state.tasks = 0;
  CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
  scene.state.sandbox = Sandbox::removing;
  CHECK(scene.kinds().empty());
  scene.state.sandbox = Sandbox::none;
  CHECK(scene.kinds() == Kinds{Kind::forget});
}

TEST_CASE("decide: a second deletion may shorten the grace period, never lengthen it") {
  Scene scene;
  scene.c().run = Scene::running();
  scene.c().run->state = Run::State::stopping;
  scene.c().run->kill_at = k_start + Seconds(30);
  scene.state.deleting = Seconds(60);
  CHECK(scene.kinds().empty());
  scene.state.deleting = Seconds(5);
  auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].kind == Kind::stop);
  CHECK(actions[0].grace == Seconds(5));
}

TEST_CASE("decide: a pod whose containers are all done is released once, not forgotten") {
  Scene scene(2);
  scene.c(0).run = Scene::ended(0);
  scene.c(1).run = Scene::ended(0);
  CHECK(finished(scene.spec, scene.state));
  CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
  scene.state.sandbox = Sandbox::none;
  CHECK(scene.kinds() == Kinds{Kind::release});
  scene.state.released = true;
  CHECK(scene.kinds().empty());
}

TEST_CASE("decide: podman keeps the containers of a pod whose status is not saved, unless it is deleted") {
  Scene scene;
  scene.c().run = Scene::ended(0);
  scene.state.unsaved = true;
  SUBCASE("one that has finished gives its disk space back first") {
    CHECK(scene.kinds() == Kinds{Kind::release});
    scene.state.released = true;
    CHECK(scene.kinds().empty());
    scene.state.unsaved = false;
    CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
  }
  SUBCASE("one whose sandbox has died") {
    scene.spec.restart_policy = RestartPolicy::always;
    scene.state.sandbox = Sandbox::lost;
    CHECK(scene.kinds().empty());
    scene.state.unsaved = false;
    CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
  }
  SUBCASE("one that is deleted") {
    scene.state.deleting = Seconds(0);
    CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
  }
}

namespace {
// A pod with one init container that ends, two sidecars and the container that they are beside.
Scene with_sidecars() {
  Scene scene(1, 3);
  scene.spec.init_containers[1].sidecar = scene.spec.init_containers[2].sidecar = true;
  scene.spec.restart_policy = RestartPolicy::never;
  scene.init(0).run = Scene::ended(0);
  return scene;
}
// All of it runs.
Scene running_sidecars() {
  Scene scene = with_sidecars();
  scene.init(1).run = scene.init(2).run = scene.c().run = Scene::running();
  return scene;
}
std::vector<std::string> names(const Decision& decision) {
  std::vector<std::string> result;
  for (const auto& action : decision.actions) result.push_back(action.container);
  return result;
}
}  // namespace

TEST_CASE("decide: each sidecar starts when the one before it runs, and the containers after them") {
  Scene scene = with_sidecars();
  CHECK(names(scene.decide()) == std::vector<std::string>{"i1"});
  CHECK_FALSE(initialized(scene.spec, scene.state));
  scene.init(1).run = Scene::running();
  CHECK(names(scene.decide()) == std::vector<std::string>{"i2"});
  scene.init(1).run->reason = "StartError";
  scene.init(1).run->state = Run::State::ended;
  scene.init(1).run->exit_known = true;
  CHECK(names(scene.decide()) == std::vector<std::string>{"i1"});
  CHECK_FALSE(initialized(scene.spec, scene.state));
  scene.init(1).run = scene.init(2).run = Scene::running();
  CHECK(names(scene.decide()) == std::vector<std::string>{"c0"});
  CHECK(initialized(scene.spec, scene.state));
}

TEST_CASE("decide: a sidecar starts again however it has ended, and the pod goes on meanwhile") {
  for (const int code : {0, 1, 143}) {
    CAPTURE(code);
    Scene scene = running_sidecars();
    scene.init(1).run = Scene::ended(code);
    CHECK(scene.decide().actions ==
          std::vector<Action>{{.kind = Kind::prepare, .container = "i1", .restart = true}});
    CHECK_FALSE(finished(scene.spec, scene.state));
    CHECK(initialized(scene.spec, scene.state));
    // Where the pod's container starts again as well, it waits for no sidecar.
    scene.spec.restart_policy = RestartPolicy::on_failure;
    scene.c().run = Scene::ended(1);
    CHECK(names(scene.decide()) == std::vector<std::string>{"i1", "c0"});
  }
}

TEST_CASE("decide: a sidecar follows its image and its size") {
  Scene scene = running_sidecars();
  scene.spec.init_containers[2].image = "new";
  CHECK(scene.decide().actions ==
        std::vector<Action>{{.kind = Kind::stop, .container = "i2", .grace = Seconds(30), .replaced = true},
                            {.kind = Kind::prepare, .container = "i2"}});
  scene.spec.init_containers[2].image = "old";
  scene.init(2).run->resources = Resources{};
  scene.spec.init_containers[2].resources.memory_limit = 1;
  CHECK(scene.kinds() == Kinds{Kind::resize});
}

TEST_CASE("decide: sidecars end after the containers that they are beside, the last one first") {
  Scene scene = running_sidecars();
  SUBCASE("at the pod's own end, as Never says whatever they do") {
    scene.c().run = Scene::ended(0);
  }
  SUBCASE("when the pod is deleted") {
    scene.state.deleting = Seconds(30);
    CHECK(names(scene.decide()) == std::vector<std::string>{"c0"});
    scene.c().run->state = Run::State::stopping;
    scene.c().run->kill_at = scene.c().run->stop_by = k_start + Seconds(30);
    CHECK(scene.decide().actions.empty());
    scene.now = k_start + Seconds(12);
    scene.c().run->state = Run::State::ended;
    scene.c().run->kill_at.reset();
  }
  const Seconds left(scene.state.deleting ? 18 : 30);
  CHECK(scene.decide().actions ==
        std::vector<Action>{{.kind = Kind::stop, .container = "i2", .grace = left, .replaced = false}});
  scene.init(2).run = Scene::ended(143);
  CHECK(names(scene.decide()) == std::vector<std::string>{"i1"});
  scene.init(1).run = Scene::ended(143);
  CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
}

TEST_CASE("decide: without time to end, sidecars are killed with the others") {
  Scene scene = running_sidecars();
  scene.state.deleting = Seconds(0);
  CHECK(scene.decide().actions.size() == 3);
}

TEST_CASE("decide: an init container that fails for good ends the pod") {
  Scene scene(1, 1);
  scene.init().run = Scene::ended(1);
  CHECK_FALSE(finished(scene.spec, scene.state));
  scene.spec.restart_policy = RestartPolicy::never;
  CHECK(finished(scene.spec, scene.state));
}

TEST_CASE("decide: activeDeadlineSeconds ends the pod") {
  Scene scene;
  scene.c().run = Scene::running();
  scene.spec.deadline_seconds = 60;
  CHECK(scene.kinds().empty());
  scene.now += Seconds(60);
  CHECK(scene.kinds() == Kinds{Kind::exceed_deadline});
  scene.state.failure = PodFailure{"DeadlineExceeded", ""};
  CHECK(scene.kinds() == Kinds{Kind::stop});
}

TEST_CASE("decide: a lost sandbox takes its containers along") {
  Scene scene;
  scene.state.sandbox = Sandbox::lost;
  scene.c().run = Scene::running();
  const auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].kind == Kind::stop);
  CHECK(actions[0].grace == Seconds(0));
  scene.c().run = Scene::ended(137);
  CHECK(scene.kinds() == Kinds{Kind::remove_sandbox});
}

TEST_CASE("decide: a running container gets the resources that the spec has, and what shrinks comes first") {
  Scene scene(3);
  for (int i = 0; i < 3; ++i) scene.c(i).run = Scene::running();
  CHECK(scene.kinds().empty());  // what an older podhost has started
  const Resources had{.cpu_limit_milli = 2000, .memory_limit = 2000};
  for (int i = 0; i < 3; ++i) {
    scene.spec.containers[static_cast<std::size_t>(i)].resources = had;
    scene.c(i).run->resources = had;
  }
  CHECK(scene.kinds().empty());
  scene.spec.containers[0].resources.memory_limit = 3000;
  scene.spec.containers[1].resources.memory_limit = 1000;
  scene.spec.containers[2].resources.cpu_request_milli = 5;
  auto actions = scene.decide().actions;
  REQUIRE(actions.size() == 2);
  CHECK(actions[0] == Action{.kind = Kind::resize, .container = "c1"});
  CHECK(actions[1] == Action{.kind = Kind::resize, .container = "c2"});
  scene.c(1).run->resizing = scene.c(2).run->resizing = true;
  CHECK(scene.kinds().empty());
  // It has failed, and is tried again.
  scene.c(1).run->resizing = false;
  scene.c(1).run->resize_retry_at = scene.now + Seconds(5);
  CHECK(scene.kinds().empty());
  CHECK(scene.decide().wake_at == scene.now + Seconds(5));
  scene.now += Seconds(5);
  CHECK(scene.kinds() == Kinds{Kind::resize});
  scene.c(1).run->resources = scene.spec.containers[1].resources;
  CHECK(scene.decide().actions[0] == Action{.kind = Kind::resize, .container = "c0"});
  // One that is being stopped is left alone.
  scene.c(0).run->state = Run::State::stopping;
  scene.c(0).run->kill_at = scene.now + Seconds(5);
  CHECK(scene.kinds().empty());
}
