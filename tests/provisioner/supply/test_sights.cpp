#include "provisioner/supply/sights.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "provisioner/supply/place.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_start{Seconds(1'000'000)};

struct Scene {
  Sights sights;
  Tracker tracker;
  PolicySettings policy;
  std::vector<Pod> pods;
  std::vector<Slot> slots;
  std::map<std::string, std::string> unseen;
  Time now = k_start;

  Pod& add(std::string name, PodState state) {
    const auto image = std::string(place_of(name)) + "/img";
    return pods.emplace_back(Pod{std::move(name), Group{}, image, state, now});
  }
  Supply look(Seconds later = Seconds(60)) {
    now += later;
    auto seen = pods;
    std::erase_if(seen, [this](const Pod& pod) { return unseen.contains(std::string(place_of(pod.name))); });
    auto places = sights.complete(seen, {"east", "west"}, unseen, slots, policy.outage_shift, now);
    return tracker.observe(seen, slots, policy, {"east/img", "west/img"}, std::move(places), now);
  }
};

}  // namespace

TEST_CASE("place: names") {
  CHECK(in_place("", "pod") == "pod");
  CHECK(in_place("east", "pod") == "east/pod");
  CHECK(place_of("pod").empty());
  CHECK(place_of("east/pod") == "east");
  CHECK(without_place("pod") == "pod");
  CHECK(without_place("east/pod") == "pod");
}

TEST_CASE("sights: pods of the same name in two places are two") {
  Scene scene;
  scene.add("east/a", PodState::unregistered);
  scene.add("west/a", PodState::unregistered);
  scene.slots = {{"west/a", true, "alice"}};
  auto supply = scene.look();
  CHECK(supply.places["east"].groups[Group{}].waiting == 1);
  CHECK(supply.places["west"].groups[Group{}].claimed == 1);
  CHECK(supply.groups[Group{}].live() == 2);
}

TEST_CASE("sights: a place that is not seen keeps its pods as they were, for ever so long") {
  Scene scene;
  scene.add("east/waits", PodState::unschedulable).jobless = true;
  scene.add("east/runs", PodState::unregistered);
  scene.add("east/ended", PodState::failed);
  scene.slots = {{"east/runs", true, "alice"}};
  scene.look();
  scene.unseen["east"] = "no answer";
  // Longer than a pod that starts may take, and than one may be without a node.
  scene.policy.outage_shift = Seconds(100'000);
  for (int i = 0; i < 30; ++i) {
    auto supply = scene.look(Seconds(300));
    const auto& pods = supply.places["east"].groups[Group{}];
    CHECK(pods.waiting == 1);
    CHECK(pods.claimed == 1);
    CHECK(pods.broken == 0);
    CHECK(pods.failures.empty());
    CHECK(supply.jobless.empty());
    CHECK(supply.ended.empty());
    CHECK(supply.places["east"].unseen == "no answer");
    CHECK(supply.places["east"].unseen_for == Seconds(300 * (i + 1)));
    CHECK(supply.places["west"].unseen.empty());
  }
  scene.unseen.clear();
  auto supply = scene.look();
  CHECK(supply.jobless.size() == 1);
  CHECK(supply.places["east"].unseen.empty());
}

TEST_CASE("sights: a pod that was made after the last sight counts all the same") {
  Scene scene;
  scene.look();
  scene.sights.made("east/a", Group{}, "east/img", scene.now);
  scene.unseen["east"] = "no answer";
  CHECK(scene.look().places["east"].groups[Group{}].waiting == 1);
  CHECK(scene.look(Seconds(599)).groups[Group{}].live() == 0);
  // What is seen then is what counts.
  scene.sights.made("west/b", Group{}, "west/img", scene.now);
  CHECK(scene.look().groups[Group{}].live() == 0);
}

TEST_CASE("sights: one that joins the pool meanwhile counts as what it is") {
  Scene scene;
  scene.add("east/a", PodState::unregistered);
  scene.look();
  scene.unseen["east"] = "no answer";
  scene.slots = {{"east/a", true, "alice"}};
  CHECK(scene.look().places["east"].groups[Group{}].claimed == 1);
}

TEST_CASE("sights: after outage_shift only those count that have an ad in the pool") {
  Scene scene;
  scene.add("east/waits", PodState::unschedulable).jobless = true;
  scene.add("east/runs", PodState::unregistered);
  scene.add("east/was", PodState::unregistered);
  scene.slots = {{"east/runs", true, "alice"}, {"east/was", false}};
  scene.look();
  scene.slots.pop_back();
  scene.unseen["east"] = "no answer";
  CHECK(scene.look(Seconds(599)).groups[Group{}].live() == 3);
  auto supply = scene.look(Seconds(1));
  CHECK(supply.groups[Group{}].live() == 1);
  CHECK(supply.groups[Group{}].claimed == 1);
  // Nothing is learnt of those that are not seen, and they are there when the place is.
  CHECK(supply.groups[Group{}].failures.empty());
  scene.unseen.clear();
  CHECK(scene.look().groups[Group{}].live() == 3);
}

TEST_CASE("sights: a place that was never seen may have any number of pods, until outage_shift") {
  Scene scene;
  scene.unseen["east"] = "no answer";
  CHECK(scene.look().places["east"].unknown);
  CHECK(scene.look(Seconds(599)).places["east"].unknown);
  CHECK_FALSE(scene.look(Seconds(1)).places["east"].unknown);
}

TEST_CASE("sights: how pilots fare is known of each place") {
  Scene scene;
  scene.add("east/a", PodState::unregistered);
  scene.add("west/a", PodState::unregistered);
  scene.slots = {{"east/a", false}};
  scene.look();
  auto supply = scene.look(Seconds(1000));
  CHECK(supply.places["east"].groups[Group{}].registrations.size() == 1);
  CHECK(supply.places["east"].groups[Group{}].failures.empty());
  CHECK(supply.places["west"].groups[Group{}].failures.size() == 1);
  CHECK(supply.groups[Group{}].failures.size() == 1);
}
