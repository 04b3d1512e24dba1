#include "provisioner/supply/supply.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_start{Seconds(1'000'000)};

struct Scene {
  Tracker tracker;
  PolicySettings policy;
  std::vector<Pod> pods;
  std::vector<Slot> slots;
  Time now = k_start;

  Pod& add(std::string name, PodState state, std::string image = "img") {
    return pods.emplace_back(Pod{std::move(name), Group{}, std::move(image), state, now});
  }
  Supply look(Seconds later = Seconds(60)) {
    now += later;
    return tracker.observe(pods, slots, policy, "img", now);
  }
  GroupSupply group(Seconds later = Seconds(60)) {
    auto supply = look(later);
    return supply.groups[Group{}];
  }
};

}  // namespace

TEST_CASE("supply: each state counts as PRP counts it") {
  struct Row {
    PodState state;
    std::int64_t waiting, unmatched, claimed, broken, unknown;
  };
  static constexpr Row rows[] = {
      {PodState::unschedulable, 1, 0, 0, 0, 0}, {PodState::pulling, 1, 0, 0, 0, 0},
      {PodState::starting, 1, 0, 0, 0, 0},      {PodState::unregistered, 1, 0, 0, 0, 0},
      {PodState::pull_error, 0, 0, 0, 1, 0},    {PodState::unknown, 0, 0, 0, 0, 1},
      {PodState::succeeded, 0, 0, 0, 0, 0},     {PodState::failed, 0, 0, 0, 0, 0},
  };
  for (const auto& row : rows) {
    CAPTURE(to_string(row.state));
    Scene scene;
    scene.add("p", row.state);
    const auto got = scene.group();
    CHECK(got.waiting == row.waiting);
    CHECK(got.unmatched == row.unmatched);
    CHECK(got.claimed == row.claimed);
    CHECK(got.broken == row.broken);
    CHECK(got.unknown == row.unknown);
    CHECK(got.states.at(row.state) == 1);
  }
}

TEST_CASE("supply: any claimed slot makes a pilot claimed, for each of its owners once") {
  Scene scene;
  scene.add("p", PodState::unregistered);
  scene.add("q", PodState::unregistered);
  scene.slots = {
      {"p", false, ""}, {"p", true, "alice"}, {"p", true, "alice"}, {"p", true, "bob"}, {"q", false, ""}};
  const auto supply = scene.look();
  CHECK(supply.groups.at(Group{}).claimed == 1);
  CHECK(supply.groups.at(Group{}).unmatched == 1);
  CHECK(supply.claimed_by_owner == std::map<std::string, std::int64_t>{{"alice", 1}, {"bob", 1}});
}

TEST_CASE("supply: what takes too long is broken, and one failure") {
  Scene scene;
  scene.add("a", PodState::pulling);
  scene.add("b", PodState::unregistered);
  scene.add("c", PodState::unschedulable);
  CHECK(scene.group(Seconds(601)).broken == 1);
  CHECK(scene.group(Seconds(300)).broken == 2);
  const auto late = scene.group(Seconds(700));
  CHECK(late.broken == 2);
  CHECK(late.waiting == 1);
  CHECK(late.failures.size() == 2);
  CHECK(scene.group(Seconds(2000)).failures.empty());
}

TEST_CASE("supply: a pilot that was in the pool and is not seen there is not broken") {
  Scene scene;
  scene.add("p", PodState::unregistered);
  scene.slots = {{"p", true, "alice"}};
  CHECK(scene.group().registrations.size() == 1);
  scene.slots.clear();
  const auto got = scene.group(Seconds(900));
  CHECK(got.unmatched == 1);
  CHECK(got.failures.empty());
}

TEST_CASE("supply: how pilots ended") {
  Scene scene;
  scene.look();  // who has joined before the first look may have had a job
  for (const auto* name : {"used", "wasted", "failed", "gone"}) scene.add(name, PodState::unregistered);
  scene.slots = {{"used", true, "a"}, {"wasted", false, ""}};
  CHECK(scene.group().wasted == 0);
  scene.pods.pop_back();
  for (auto& pod : scene.pods) pod.state = PodState::succeeded;
  auto supply = scene.look();
  const auto& got = supply.groups[Group{}];
  CHECK(got.used == 1);
  CHECK(got.wasted == 1);
  CHECK(got.failures.size() == 1);
  CHECK(got.live() == 0);
  REQUIRE(supply.ended.size() == 3);
  CHECK(supply.ended[0].sightings == 1);
  CHECK(scene.look().ended[0].sightings == 2);
  CHECK(scene.group().wasted == 1);
  CHECK(scene.group(Seconds(4000)).wasted == 0);
}

TEST_CASE("supply: pods that ended before the start say nothing, pods made here do") {
  Scene scene;
  scene.add("old", PodState::failed);
  CHECK(scene.group().failures.empty());
  scene.tracker.created("new", Group{}, "img");
  scene.add("new", PodState::failed);
  CHECK(scene.group().failures.size() == 1);
}

TEST_CASE("supply: failures of another image do not count") {
  Scene scene;
  scene.add("p", PodState::pull_error, "other");
  const auto got = scene.group();
  CHECK(got.broken == 1);
  CHECK(got.failures.empty());
}

TEST_CASE("supply: a pod without a job is one that the pool has no ad of") {
  Scene scene;
  for (const auto* name : {"a", "b", "c"}) scene.add(name, PodState::starting).jobless = true;
  scene.pods[0].jobless = false;
  scene.slots = {{"b", false, ""}};
  const auto supply = scene.look();
  REQUIRE(supply.jobless.size() == 1);
  CHECK(supply.jobless[0].name == "c");
}

TEST_CASE("supply: pods that new settings would make otherwise do not count, but for those about to run") {
  Scene scene;
  for (const auto state : {PodState::unschedulable, PodState::pull_error, PodState::pulling})
    for (const bool outdated : {false, true}) {
      auto& pod = scene.add(fmt::format("{} {}", to_string(state), outdated), state);
      pod.jobless = true;
      pod.outdated = outdated;
    }
  auto supply = scene.look();
  auto& got = supply.groups[Group{}];
  CHECK(got.waiting == 3);
  CHECK(got.broken == 1);
  CHECK(got.unknown == 2);
  CHECK(got.unschedulable == 1);
  CHECK(got.unschedulable_since == k_start);
  CHECK(std::count_if(supply.jobless.begin(), supply.jobless.end(),
                      [](const auto& p) { return p.outdated; }) == 2);
  CHECK(scene.group(Seconds(601)).unknown == 3);
}

TEST_CASE("supply: a pod that was taken away is neither a failure of its image nor waste") {
  for (const bool joined : {false, true})
    for (const auto state : {PodState::failed, PodState::succeeded}) {
      CAPTURE(joined);
      Scene scene;
      scene.look();
      for (const auto* name : {"own", "taken", "refused", "gone"}) {
        scene.add(name, PodState::unregistered);
        if (joined) scene.slots.push_back({name, false, ""});
      }
      scene.look();
      for (auto& pod : scene.pods) pod.state = state;
      scene.pods[1].end = PodEnd::taken;
      scene.pods[2].end = PodEnd::refused;
      scene.pods.pop_back();
      const auto got = scene.group();
      CHECK(got.failures.size() == (joined ? 0 : 1));
      CHECK(got.wasted == (joined ? 1 : 0));
    }
}

TEST_CASE("supply: what pods have left for jobs that they take now") {
  Scene scene;
  scene.look();
  for (const auto* name : {"busy", "free", "leaves", "troubled", "old", "ended"}) {
    scene.add(name, PodState::unregistered);
    Slot slot{name, false, ""};
    slot.room = of_slot(6, 4096, 1000, 0, 3);
    slot.room_until = scene.now + Seconds(100);
    scene.slots.push_back(slot);
  }
  scene.slots.push_back({"busy", true, "alice"});
  scene.pods[2].leaving = true;
  scene.slots[3].trouble = "five failures";
  scene.slots[4].room_until = scene.now + Seconds(60);
  scene.pods[5].state = PodState::succeeded;
  const auto supply = scene.look();
  REQUIRE(supply.rooms.size() == 2);
  CHECK(supply.rooms[0].has_job);
  CHECK_FALSE(supply.rooms[1].has_job);
  CHECK(supply.rooms[0].left.cpu_milli == 6000);
}

TEST_CASE("supply: a pod near its end has no room for a long job") {
  Scene scene;
  scene.look();
  scene.add("p", PodState::unregistered).near_end = scene.now + Seconds(120);
  Slot slot{"p", true, "alice"};
  slot.room = of_slot(6, 4096, 1000, 0, 3);
  slot.room_until = scene.now + Seconds(1000);
  scene.slots.push_back(slot);
  CHECK(scene.look(Seconds(119)).rooms.size() == 1);
  const auto later = scene.look(Seconds(1));
  CHECK(later.rooms.empty());
  CHECK(later.groups.at(Group{}).claimed == 1);
}

TEST_CASE("supply: a pod that a scheduling gate holds back is without a node") {
  Scene scene;
  scene.add("a", PodState::gated).jobless = true;
  const auto supply = scene.look(Seconds(5000));
  CHECK(supply.groups.at(Group{}).unschedulable == 1);
  CHECK(supply.groups.at(Group{}).unschedulable_since == k_start);
}

TEST_CASE("supply: a pod that an autoscaler makes a node for is not without one for ever") {
  Scene scene;
  scene.add("a", PodState::unschedulable).jobless = true;
  scene.add("b", PodState::unschedulable).jobless = true;
  scene.pods[1].node_comes = true;
  const auto supply = scene.look(Seconds(5000));
  const auto& group = supply.groups.at(Group{});
  CHECK(group.waiting == 2);
  CHECK(group.unschedulable == 1);
  REQUIRE(supply.jobless.size() == 2);
  CHECK(supply.jobless[1].node_comes);
}

TEST_CASE("supply: a job that a pod had counts, however the pod ended") {
  Scene scene;
  for (const auto* name : {"taken", "gone"}) {
    scene.add(name, PodState::unregistered);
    scene.slots.push_back({name, true, "alice"});
  }
  scene.look();
  scene.pods.pop_back();
  scene.pods[0].state = PodState::failed;
  scene.pods[0].end = PodEnd::taken;
  CHECK(scene.group().used == 2);
}

TEST_CASE(
    "supply: a pod that a job's image keeps waiting is no failure of its pilot's, nor in another's way") {
  for (const auto state : {PodState::pulling, PodState::starting}) {
    Scene scene;
    scene.add("a", state).awaits = {"huge:1"};
    CHECK(scene.group().waiting == 1);
    const auto late = scene.group(Seconds(1000));
    CHECK(late.waiting == 0);
    CHECK(late.broken == 0);
    CHECK(late.unknown == 1);
    CHECK(late.failures.empty());
    // It ends without having joined.
    scene.pods[0].state = PodState::failed;
    scene.pods[0].awaits.clear();
    CHECK(scene.group().failures.empty());
    scene.pods.clear();
    scene.add("b", state);
    CHECK(scene.group(Seconds(1000)).failures.size() == 1);
  }
}

TEST_CASE("supply: drained pods are no room, nobody waits for them, and how they end says nothing") {
  Scene scene;
  for (const auto* name : {"waits", "free", "works", "breaks"}) scene.add(name, PodState::unregistered);
  scene.pods[0].state = PodState::unschedulable;
  scene.pods[0].jobless = true;
  scene.pods[3].state = PodState::pull_error;
  scene.slots = {{"free", false}, {"works", true, "alice"}};
  scene.slots[0].room = scene.slots[1].room = of_job(1, 1000, 1000, 0);
  for (auto& slot : scene.slots) slot.room_until = scene.now + Seconds(1000);
  CHECK(scene.look(Seconds(1)).rooms.size() == 2);
  for (auto& pod : scene.pods) pod.drained = "new disks";
  const auto seen = scene.look(Seconds(1));
  CHECK(seen.rooms.empty());
  const auto& group = seen.groups.at(Group{});
  CHECK(group.unclaimed() == 0);
  CHECK(group.unschedulable == 0);
  CHECK(group.claimed == 1);
  CHECK(group.unknown == 3);
  REQUIRE(seen.jobless.size() == 1);
  CHECK(seen.jobless[0].drained == "new disks");
  for (auto& pod : scene.pods) pod.state = PodState::failed;
  scene.slots.clear();
  const auto after = scene.group();
  CHECK(after.wasted == 0);
  CHECK(after.used == 1);
  CHECK(after.failures.size() == 1);  // the one that had failed before
  CHECK(after.crashes.empty());
}
