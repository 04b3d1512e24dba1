#include "provisioner/decide/decide.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/provisioner/decide/scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::decide_test;

TEST_CASE("removal: ended pods go by age and number, failed ones are kept for a look") {
  Scene scene;
  scene.rules().finished_kept = 3;
  scene.rules().failed_kept = 1;
  scene.policy.finished_ttl = Seconds(1000);
  const auto ended = [](const char* name, bool failed, int ago) {
    return EndedPod{name, failed, k_now - Seconds(ago), 1};
  };
  scene.supply.ended = {ended("d", false, 1002), ended("b", false, 1000), ended("f", true, 9000),
                        ended("c", false, 1001), ended("a", false, 10),   ended("e", true, 5000)};
  const auto plan = scene.plan();
  REQUIRE(plan.removals.size() == 3);
  CHECK(plan.removals[0].pod == "f");
  CHECK(plan.removals[0].reason == "1 newer failed pods are kept");
  CHECK(plan.removals[1].pod == "d");
  CHECK(plan.removals[1].reason == "3 newer finished pods are kept");
  CHECK(plan.removals[2].pod == "c");
  CHECK(plan.removals[2].reason == "finished 1001 s ago");
  scene.policy.removals_per_cycle = 1;
  CHECK(scene.plan().removals.size() == 1);
  scene.policy.sightings_before_removal = 10;
  CHECK(scene.plan().removals.empty());
  scene.supply.ended[1].sightings = 10;
  CHECK(scene.plan().removals[0].reason == "ended, seen 10 times");
}

namespace {

JoblessPod jobless(const std::string& name, PodState state, int age, std::int64_t cpus = 1) {
  return {name, group(cpus), state, k_now - Seconds(age)};
}

// So many pods that wait for room, "w0" the oldest.
void wait_for_room(Scene& scene, std::int64_t cpus, int count, int age) {
  auto& pods = scene.supply.groups[group(cpus)];
  for (int i = 0; i < count; ++i)
    scene.supply.jobless.push_back(jobless(fmt::format("w{}", i), PodState::unschedulable, age - i, cpus));
  pods.waiting += count;
  pods.unschedulable += count;
  pods.unschedulable_since = k_now - Seconds(age);
}

List removed(Scene& scene, int later) {
  scene.now += Seconds(later);
  List result;
  for (const auto& removal : scene.plan().removals) result.push_back(removal.pod);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

TEST_CASE("removal: a pod that cannot start goes after twice the time after which it has failed") {
  Scene scene;
  scene.jobs(1, 40);
  scene.policy.settings.pull_limit = Seconds(600);
  scene.policy.settings.register_limit = Seconds(900);
  scene.supply.jobless = {
      jobless("a", PodState::pull_error, 1200), jobless("b", PodState::pull_error, 1201),
      jobless("c", PodState::starting, 1800),   jobless("d", PodState::starting, 1801),
      jobless("e", PodState::pulling, 1201),    jobless("f", PodState::unschedulable, 100'000),
      jobless("g", PodState::gated, 100'000)};
  const auto plan = scene.plan();
  REQUIRE(plan.removals.size() == 3);
  CHECK(plan.removals[2].pod == "b");
  CHECK(plan.removals[2].reason == "pull error for 1201 s");
  CHECK(plan.removals[1].reason == "starting for 1801 s");
  CHECK(plan.removals[0].reason == "pulling for 1201 s");
  scene.supply.blind = "no API";
  CHECK(scene.plan().removals.empty());
}

TEST_CASE(
    "removal: pods whose jobs have left are taken back once that has lasted, and a second burst is "
    "answered") {
  Scene scene;
  wait_for_room(scene, 1, 5, 60);
  scene.supply.jobless.push_back(jobless("e", PodState::pull_error, 60));
  // What is about to run is let run.
  scene.supply.jobless.push_back(jobless("s", PodState::starting, 60));
  scene.supply.jobless.push_back(jobless("g", PodState::gated, 60));
  CHECK(removed(scene, 0).empty());
  CHECK(removed(scene, 599).empty());
  CHECK(removed(scene, 1) == List{"e", "g", "w0", "w1", "w2", "w3", "w4"});
  CHECK(scene.plan().removals[0].reason == "0 wanted for 600 s");
  scene.supply = {};
  scene.jobs(1, 40);
  CHECK(scene.one().submit == 11);
}

TEST_CASE("removal: jobs that come back in time keep their pods, and the time begins anew") {
  Scene scene;
  scene.rules().unschedulable_limit = Seconds(0);
  wait_for_room(scene, 1, 5, 60);
  CHECK(removed(scene, 0).empty());
  scene.jobs(1, 40);
  CHECK(removed(scene, 599).empty());
  scene.demand.groups.clear();
  CHECK(removed(scene, 1).empty());
  CHECK(removed(scene, 599).empty());
  CHECK(removed(scene, 1).size() == 5);
}

TEST_CASE("removal: the time begins with the first pod too many") {
  Scene scene;
  scene.rules().unschedulable_limit = Seconds(0);
  scene.jobs(1, 8);  // ask for three
  wait_for_room(scene, 1, 3, 60);
  CHECK(removed(scene, 0).empty());
  scene.demand.groups.clear();
  CHECK(removed(scene, 700).empty());
  CHECK(removed(scene, 599).empty());
  CHECK(removed(scene, 1).size() == 3);
}

TEST_CASE("removal: what a schedd that does not answer has is not known, and no pod is taken back for it") {
  Scene scene;
  wait_for_room(scene, 1, 5, 60);
  scene.demand.schedds_failed = 1;
  CHECK(removed(scene, 0).empty());
  CHECK(removed(scene, 5000).empty());
  scene.demand.schedds_failed = 0;
  CHECK(removed(scene, 0).empty());
  CHECK(removed(scene, 600).size() == 5);
  scene.rules().take_back_after = Seconds(0);
  CHECK(removed(scene, 600).empty());
}

TEST_CASE(
    "removal: only what is above the wanted is taken back, the newest first, never what is full or has a "
    "node") {
  Scene scene;
  scene.jobs(1, 8);  // ask for three
  wait_for_room(scene, 1, 5, 60);
  scene.supply.groups[group(1)].waiting += 1;  // and one is being pulled
  scene.supply.jobless.push_back(jobless("p", PodState::pulling, 60));
  // One without an image has a node, and waits for the jobs that there are.
  scene.supply.jobless.push_back(jobless("e", PodState::pull_error, 30));
  removed(scene, 0);
  CHECK(removed(scene, 600) == List{"w2", "w3", "w4"});
  // A group that is full is asked for more pods than it has, not for fewer.
  scene.policy.max_submit_pods_per_cluster = 4;
  CHECK(removed(scene, 0) == List{"w2", "w3", "w4"});
}

TEST_CASE("removal: jobs that no node can hold are down to one pod, and the others get theirs") {
  Scene scene;
  scene.jobs(64, 3000);
  scene.rules().max_idle = 20;
  wait_for_room(scene, 64, 20, 600);
  CHECK(removed(scene, 0).empty());
  scene.jobs(1, 40);
  const auto plan = scene.plan();
  CHECK(plan.decisions[0].submit == 0);  // max_idle is used up
  scene.now += Seconds(1);
  const auto later = scene.plan();
  CHECK(later.decisions[1].target == 1);
  CHECK(text(later.decisions[1].steps.back()) == "20 wait already");
  CHECK(text(later.decisions[1].steps[1]) == "no node for 601 s: 20 -> 1");
  CHECK(removed(scene, 600).size() == 19);
  CHECK(removed(scene, 0).front() == "w1");
  scene.supply = {};
  wait_for_room(scene, 64, 1, 600);
  CHECK(scene.plan().decisions[0].submit == 11);
  // Where one has got a node, there is room now and then: the others go on waiting for it.
  scene.supply.groups[group(64)].claimed = 1;
  CHECK(scene.plan().decisions[1].target == 20);
  scene.supply.groups[group(64)].claimed = 0;
  scene.rules().unschedulable_limit = Seconds(0);
  CHECK(scene.plan().decisions[1].target == 20);
}

TEST_CASE("removal: pods that a scheduling gate holds back are taken back like those without a node") {
  Scene scene;
  scene.jobs(1, 8);  // ask for three
  wait_for_room(scene, 1, 5, 60);
  for (auto& pod : scene.supply.jobless) pod.state = PodState::gated;
  CHECK(removed(scene, 0).empty());
  CHECK(removed(scene, 600) == List{"w1", "w2", "w3", "w4"});  // and there has been no node for long
}

TEST_CASE("removal: pods that an autoscaler makes nodes for stay while there are jobs") {
  Scene scene;
  scene.jobs(64, 3000);
  wait_for_room(scene, 64, 20, 700);
  CHECK(scene.plan().decisions[0].target == 1);
  // One has its node soon: the group is without room no more.
  --scene.supply.groups[group(64)].unschedulable;
  scene.supply.jobless[0].node_comes = true;
  CHECK(scene.plan().decisions[0].target == 20);
  // Fewer jobs ask for three, and of what is above that these stay.
  scene.demand.groups.clear();
  scene.jobs(64, 8);
  for (auto& pod : scene.supply.jobless) pod.node_comes = pod.name < std::string("w15");
  CHECK(removed(scene, 0).empty());
  CHECK(removed(scene, 600).size() ==
        std::size_t(std::ranges::count(scene.supply.jobless, false, &JoblessPod::node_comes)));
  scene.demand.groups.clear();
  CHECK(removed(scene, 0).size() == 20);
}

TEST_CASE("removal: pods that new settings would make otherwise go at once") {
  Scene scene;
  scene.jobs(1, 40);
  scene.supply.jobless = {jobless("old", PodState::unschedulable, 1)};
  scene.supply.jobless[0].outdated = true;
  const auto plan = scene.plan();
  REQUIRE(plan.removals.size() == 1);
  CHECK(plan.removals[0].reason == "made with other settings");
  CHECK(plan.decisions[0].submit == 11);
}

TEST_CASE("removal: with less than none in a cycle it is none") {
  Scene scene;
  scene.supply.ended = {EndedPod{"a", false, Time{}, 1}};
  CHECK(scene.plan().removals.size() == 1);
  scene.policy.removals_per_cycle = -1;
  CHECK(scene.plan().removals.empty());
}
