#include "provisioner/decide/places.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "provisioner/decide/breaker.hpp"
#include "provisioner/decide/nodes.hpp"
#include "tests/provisioner/decide/inputs.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using Verdict = Decision::Verdict;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

// Two places, east of weight 3 and west of 1, with 1,000 waiting pods each at most.
struct Scene : Inputs {
  Scene() {
    set_places(policy, {{.name = "east", .image = "east/img", .weight = 3, .max_pods_per_cluster = 1000},
                        {.name = "west", .image = "west/img", .weight = 1, .max_pods_per_cluster = 1000}});
    for (const auto& place : policy.places) supply.places[place.name];
  }
  PlacePolicy& rules(const std::string& name) {
    return *std::ranges::find(policy.places, name, &PlacePolicy::name);
  }
  void jobs(std::int64_t cpus, std::int64_t idle) {
    demand.groups[group(cpus)] = {.idle = idle, .owners = {{"alice", idle}}};
  }
  GroupSupply& pods(const std::string& place) { return supply.places[place].groups[group(1)]; }
  void sum_up() {
    supply.groups.clear();
    for (const auto& [name, place] : supply.places)
      for (const auto& [key, pods] : place.groups) add(supply.groups[key], pods);
  }
  Plan plan() {
    sum_up();
    return Inputs::plan();
  }
  Decision one() {
    sum_up();
    return Inputs::one();
  }
  // "3 1": what east and west get.
  std::string split() {
    const auto decision = one();
    return fmt::format("{} {}", decision.places[0].submit, decision.places[1].submit);
  }
  void lose(const std::string& place, Seconds age) {
    supply.places[place].unseen = "no answer";
    supply.places[place].unseen_for = age;
  }
};

}  // namespace

TEST_CASE("places: together they get what the law says, and each its share") {
  Scene scene;
  scene.jobs(1, 400);
  const auto decision = scene.one();
  CHECK(decision.submit == 40);
  CHECK(scene.split() == "30 10");
  CHECK(decision.reason() == "400 idle jobs ask for 40 waiting pods; pods: 30 in east, 10 in west");
}

TEST_CASE("places: what counts for a share is what is there, not what is made in one cycle") {
  Scene scene;
  scene.jobs(1, 4);
  std::map<std::string, std::int64_t> made;
  for (int i = 0; i < 40; ++i) {
    const auto decision = scene.one();
    CHECK(decision.submit == 2);
    for (const auto& in : decision.places) {
      made[in.place] += in.submit;
      scene.pods(in.place).claimed += in.submit;
    }
  }
  CHECK(made["east"] == 60);
  CHECK(made["west"] == 20);
}

TEST_CASE("places: what one does not take is the others'") {
  Scene scene;
  scene.jobs(1, 400);
  SUBCASE("by its own limit of waiting pods") {
    scene.rules("east").max_pods_per_cluster = 5;
    CHECK(scene.split() == "5 35");
    const auto decision = scene.one();
    CHECK(decision.reason().find("east: max_pods_per_cluster 5: 0 wait") != std::string::npos);
    REQUIRE(decision.places.at(0).why.has_value());
    CHECK(decision.places[0].why->rule == Rule::max_pods_per_cluster);
    CHECK_FALSE(decision.places.at(1).why.has_value());
    scene.pods("east").waiting = 2;
    CHECK(scene.split() == "3 35");
  }
  SUBCASE("by its own cap") {
    scene.rules("west").max_pods = 4;
    CHECK(scene.split() == "36 4");
    CHECK(scene.one().reason().find("west: max_pods 4: has 4") != std::string::npos);
  }
  SUBCASE("by the cap of a group") {
    scene.rules("west").max_submit_pods_per_cluster = 3;
    CHECK(scene.split() == "37 3");
    scene.pods("west").claimed = 1;
    CHECK(scene.split() == "38 2");
    scene.pods("west").claimed = 0;
    // Of two limits that leave as much the first is told.
    scene.rules("west").max_pods_per_cluster = 3;
    CHECK(scene.one().reason().find("west: max_pods_per_cluster 3: 0 wait") != std::string::npos);
  }
  SUBCASE("by its quota") {
    scene.capacity.places["east"].needs[group(1)] = {.cpu_milli = 1000};
    CHECK(scene.split() == "30 10");
    scene.capacity.places["east"].quota_left = Resources{.cpu_milli = 7000, .pods = 100};
    CHECK(scene.split() == "7 33");
    CHECK(scene.one().reason().find("east: quota") != std::string::npos);
    // Where nobody knows what a pod of the group needs, it limits nothing.
    scene.capacity.places["east"].needs.clear();
    CHECK(scene.split() == "30 10");
  }
  SUBCASE("as it is too small") {
    scene.capacity.places["east"].needs[group(1)] = {.cpu_milli = 1000};
    scene.capacity.places["east"].nodes = {{.cpu_milli = 500}};
    CHECK(scene.split() == "0 40");
    CHECK(scene.one().reason() ==
          "400 idle jobs ask for 40 waiting pods; east: larger than every node; pods: 40 in west");
  }
  SUBCASE("as its pilots fail") {
    for (int i = 0; i < 3; ++i) scene.pods("east").failures.emplace_back(k_now - Seconds(60));
    CHECK(scene.split() == "0 40");
    CHECK(scene.one().verdict == Verdict::submit);
    const auto plan = scene.plan();
    CHECK(plan.breaker_open(plan.decisions.at(0)));
    for (const auto* expected : {"40 0", "0 40"}) {
      std::swap(scene.pods("east"), scene.pods("west"));
      scene.history = {};
      CHECK(scene.split() == expected);
      CHECK(scene.one().verdict == Verdict::submit);
    }
    // Later one pod tries there.
    scene.now += Seconds(301);
    CHECK(scene.split() == "1 39");
    CHECK(scene.split() == "0 40");
  }
  SUBCASE("as it has had no node for long") {
    auto& pods = scene.pods("east");
    pods.waiting = pods.unschedulable = 6;
    pods.unschedulable_since = k_now - Seconds(700);
    pods.states[PodState::unschedulable] = 6;
    CHECK(scene.split() == "0 40");
    CHECK(scene.one().reason().find("6 pods without a node in east count no more") != std::string::npos);
  }
  SUBCASE("as it has a weight of 0") {
    scene.rules("west").weight = 0;
    CHECK(scene.split() == "40 0");
    scene.rules("east").max_pods = 10;
    CHECK(scene.split() == "10 30");
    scene.rules("east").weight = scene.rules("east").max_pods = 0;
    CHECK(scene.split() == "20 20");
    // Of two that are alike in all the first gets the odd one.
    scene.jobs(1, 1);
    CHECK(scene.split() == "1 0");
  }
}

TEST_CASE("places: without any the limits are those of all together") {
  Policy policy;
  policy.max_pods_per_cluster = 7;
  policy.max_submit_pods_per_cluster = 8;
  set_places(policy, {});
  CHECK(policy.max_pods_per_cluster == 7);
  CHECK(policy.max_submit_pods_per_cluster == 8);
  set_places(policy, {{.name = "east", .max_pods_per_cluster = 2, .max_submit_pods_per_cluster = 20},
                      {.name = "west", .max_pods_per_cluster = 3, .max_submit_pods_per_cluster = 30}});
  CHECK(policy.max_pods_per_cluster == 5);
  CHECK(policy.max_submit_pods_per_cluster == 50);
}

TEST_CASE("places: of equal ones the one with more weight comes first") {
  Scene scene;
  scene.jobs(1, 1);
  scene.rules("west").weight = 9;
  CHECK(scene.split() == "0 1");
}

TEST_CASE("places: pilots that failed on a node that is avoided do not stop their place") {
  Scene scene;
  scene.jobs(1, 400);
  scene.history.nodes["east/n"] = {.since = k_now - Seconds(50), .until = k_now + Seconds(50), .failed = 3};
  for (int i = 0; i < 3; ++i)
    scene.pods("east").failures.emplace_back(k_now - Seconds(60), fmt::format("east/p{}", i), "east/n");
  CHECK(scene.split() == "30 10");
}

TEST_CASE("places: what none takes is not made, and says why") {
  Scene scene;
  scene.jobs(1, 400);
  scene.rules("east").max_pods = 5;
  scene.rules("west").max_pods = 1;
  const auto decision = scene.one();
  CHECK(decision.submit == 6);
  CHECK(decision.reason().find("places: 40 -> 6") != std::string::npos);
  for (const auto* place : {"east", "west"})
    for (int i = 0; i < 3; ++i) scene.pods(place).failures.emplace_back(k_now - Seconds(60));
  CHECK(scene.one().verdict == Verdict::stopped);
  scene.now += Seconds(301);
  CHECK(scene.one().verdict == Verdict::canary);
  CHECK_FALSE(scene.history.breakers.contains({group(1), scene.policy.image}));
}

TEST_CASE("places: a group is stopped where it is in all of them, and tries where only such get a pod") {
  Scene scene;
  scene.jobs(1, 400);
  scene.rules("east").max_pods = 1;
  scene.pods("east").claimed = 1;
  for (int i = 0; i < 3; ++i) scene.pods("west").failures.emplace_back(k_now - Seconds(60));
  CHECK(scene.split() == "0 0");
  CHECK(scene.one().verdict == Verdict::limited);
  scene.now += Seconds(301);
  const auto tries = scene.one();
  CHECK(tries.submit == 1);
  CHECK(tries.verdict == Verdict::canary);
  // Where enough wait nothing is stopped.
  for (int i = 0; i < 3; ++i) scene.pods("east").failures.emplace_back(k_now - Seconds(60));
  scene.pods("east").waiting = 40;
  CHECK(scene.one().verdict == Verdict::enough);
}

TEST_CASE("places: what no place could ever run is unservable") {
  Scene scene;
  scene.jobs(1, 4);
  for (const auto* place : {"east", "west"}) {
    scene.capacity.places[place].needs[group(1)] = {.cpu_milli = 1000};
    scene.capacity.places[place].nodes = {{.cpu_milli = 500}};
  }
  CHECK(scene.one().reason() == "east: larger than every node; west: larger than every node");
  // Of one that is not seen that is not known.
  scene.capacity.places.erase("west");
  CHECK(scene.one().verdict != Verdict::unservable);
}

TEST_CASE("places: one that is not seen gets none, and its pods count as they were") {
  Scene scene;
  scene.jobs(1, 400);
  scene.pods("east").waiting = 20;
  scene.pods("west").waiting = 10;
  CHECK(scene.split() == "10 0");
  scene.lose("east", Seconds(60));
  CHECK(scene.split() == "0 10");
  CHECK(scene.one().reason().find("east: not seen for 60 s") != std::string::npos);
  // Its breaker, too, is as it was.
  for (int i = 0; i < 3; ++i) scene.pods("east").failures.emplace_back(k_now - Seconds(60));
  scene.one();
  CHECK_FALSE(scene.history.breakers[{group(1), "east/img"}].open);
}

TEST_CASE("places: of one that was never seen nobody knows what it has, so nothing is made for a while") {
  Scene scene;
  scene.jobs(1, 400);
  scene.lose("east", Seconds(60));
  scene.supply.places["east"].unknown = true;
  const auto decision = scene.one();
  CHECK(decision.submit == 0);
  CHECK(decision.verdict == Verdict::limited);
  CHECK(decision.reason().find("west: waits for east, which nobody has seen yet") != std::string::npos);
}

TEST_CASE("places: while one is not seen nothing is taken back for want of jobs") {
  Scene scene;
  scene.jobs(1, 4);
  auto& pods = scene.pods("west");
  pods.waiting = 5;
  for (int i = 0; i < 5; ++i)
    scene.supply.jobless.push_back({fmt::format("west/{}", i), group(1), PodState::unschedulable, k_now});
  scene.lose("east", Seconds(60));
  for (int i = 0; i < 3; ++i) {
    CHECK(scene.plan().removals.empty());
    scene.now += Seconds(900);
  }
  scene.supply.places["east"].unseen.clear();
  CHECK(scene.plan().removals.empty());
  scene.now += Seconds(900);
  CHECK(scene.plan().removals.size() == 3);
}

TEST_CASE("places: of pods that have long had no node in one place the oldest stays") {
  Scene scene;
  scene.jobs(1, 400);
  auto& pods = scene.pods("west");
  pods.waiting = pods.unschedulable = 4;
  pods.states[PodState::unschedulable] = 4;
  pods.unschedulable_since = k_now - Seconds(700);
  // The first of two that are as old, so that it is the same each time.
  for (int i = 0; i < 4; ++i)
    scene.supply.jobless.push_back(
        {fmt::format("west/{}", i), group(1), PodState::unschedulable, k_now - Seconds(i < 2 ? 700 : 600)});
  // Nor is it about what waits for something else, has a node to come, or is elsewhere.
  scene.supply.jobless.push_back({"west/image", group(1), PodState::pull_error, k_now - Seconds(60)});
  scene.supply.jobless.push_back({"west/comes", group(1), PodState::unschedulable, k_now - Seconds(60)});
  scene.supply.jobless.back().node_comes = true;
  scene.supply.jobless.push_back({"east/0", group(1), PodState::unschedulable, k_now - Seconds(60)});
  const auto removals = scene.plan().removals;
  std::set<std::string> gone;
  for (const auto& removal : removals) {
    gone.insert(removal.pod);
    CHECK(removal.reason == "no node in west, where others may have room");
  }
  CHECK(gone == std::set<std::string>{"west/1", "west/2", "west/3"});
  // Nor is any removed twice once it is one too many as well.
  scene.demand.priorities.group_of["alice"] = "physics";
  scene.demand.priorities.quota_left["physics"] = 0;
  scene.plan();
  scene.now += Seconds(600);
  std::map<std::string, int> times;
  for (const auto& removal : scene.plan().removals) ++times[removal.pod];
  CHECK(
      times ==
      std::map<std::string, int>{
          {"east/0", 1}, {"west/1", 1}, {"west/2", 1}, {"west/3", 1}, {"west/comes", 1}, {"west/image", 1}});
}

TEST_CASE("places: with room in none of them one pod waits in each, and no more are made") {
  Scene scene;
  scene.jobs(1, 400);
  for (const auto* place : {"east", "west"}) {
    auto& pods = scene.pods(place);
    pods.waiting = pods.unschedulable = 1;
    pods.states[PodState::unschedulable] = 1;
    pods.unschedulable_since = k_now - Seconds(700);
  }
  for (const auto* place : {"east", "west"})
    for (int i = 0; i < 2; ++i)
      scene.supply.jobless.push_back(
          {fmt::format("{}/{}", place, i), group(1), PodState::unschedulable, k_now - Seconds(700)});
  CHECK(scene.split() == "0 0");
  CHECK(scene.one().reason().find("count no more") == std::string::npos);
  CHECK(scene.plan().removals.empty());
}

TEST_CASE("places: limits of all hold over all of them") {
  Scene scene;
  scene.jobs(1, 400);
  scene.jobs(2, 400);
  scene.policy.settings.max_pods = 12;
  const auto plan = scene.plan();
  CHECK(plan.submissions() == 12);
  std::map<std::string, std::int64_t> made;
  for (const auto& decision : plan.decisions)
    for (const auto& in : decision.places) made[in.place] += in.submit;
  CHECK(made["east"] == 9);
  CHECK(made["west"] == 3);
}

TEST_CASE("places: that pilots work in another place says nothing of a node") {
  Supply supply;
  auto& pods = supply.groups[group(1)];
  for (int i = 0; i < 3; ++i)
    pods.failures.emplace_back(k_now - Seconds(60 * i), fmt::format("west/p{}", i), "west/n1");
  pods.at_work = {"east/n1"};
  std::map<std::string, NodeMemory> nodes;
  judge_nodes(nodes, supply, {}, k_now);
  CHECK(nodes.empty());
  pods.at_work = {"west/n2"};
  judge_nodes(nodes, supply, {}, k_now);
  CHECK(nodes.contains("west/n1"));
}

TEST_CASE("places: where one place's API refuses a group, the other gets its pods") {
  Scene scene;
  scene.jobs(1, 40);
  note_refusal(scene.history, group(1), "east", "422 Invalid", scene.policy.settings, scene.now);
  CHECK(scene.split() == "0 11");
}

TEST_CASE("places: those that do not answer are told, and no others") {
  Scene scene;
  scene.jobs(1, 40);
  scene.lose("east", Seconds(60));
  CHECK(scene.plan().unseen == std::map<std::string, std::string>{{"east", "no answer"}});
}

TEST_CASE("places: only pods of places without room count no more, neither as waiting nor as too many") {
  Scene scene;
  scene.jobs(1, 4);  // ask for two
  auto& west = scene.pods("west");
  west.waiting = west.unschedulable = 4;
  west.unschedulable_since = k_now - Seconds(700);
  auto& east = scene.pods("east");
  east.waiting = east.unschedulable = 3;
  east.unschedulable_since = k_now - Seconds(10);
  for (int i = 0; i < 3; ++i)
    scene.supply.jobless.push_back({fmt::format("east/{}", i), group(1), PodState::unschedulable, k_now});
  CHECK(scene.one().stuck == 4);
  scene.policy.settings.unschedulable_limit = Seconds(1000);
  west.unschedulable_since = k_now - Seconds(100'000);
  scene.plan();
  scene.now += Seconds(600);
  CHECK(scene.plan().removals.size() == 1);
}

TEST_CASE("places: what the API of the only place refused says nothing of several") {
  Scene scene;
  scene.jobs(1, 400);
  note_refusal(scene.history, group(1), {}, "422 Invalid", scene.policy.settings, scene.now);
  CHECK(scene.split() == "30 10");
}
