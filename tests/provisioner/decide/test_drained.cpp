#include "provisioner/decide/drained.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "provisioner/decide/places.hpp"
#include "tests/provisioner/decide/inputs.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using Kind = Drained::Kind;
using Mode = Drained::Mode;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

struct Scene : Inputs {
  Scene() {
    for (const int cpus : {1, 2}) demand.groups[group(cpus)] = {.idle = 8, .owners = {{"alice", 8}}};
  }
  void drains(Kind kind, std::string name, Mode mode = Mode::drain) {
    policy.drained.push_back({kind, std::move(name), mode, "new disks", k_now - Seconds(90)});
  }
};

}  // namespace

TEST_CASE("drained: a group gets no pods, others do as ever, and it is told why") {
  Scene scene;
  scene.drains(Kind::group, group(1).hash());
  const auto plan = scene.plan();
  REQUIRE(plan.decisions.size() == 2);
  CHECK(plan.decisions[0].submit == 0);
  CHECK(plan.decisions[0].verdict == Decision::Verdict::limited);
  CHECK(plan.decisions[0].reason() == "drained for 90 s: new disks");
  CHECK(plan.decisions[1].submit == 3);
  CHECK(plan.drained.size() == 1);
  scene.policy.drained.clear();
  CHECK(scene.plan().decisions[0].submit == 3);
}

TEST_CASE("drained: pods that wait go at once, whatever they wait for") {
  Scene scene;
  scene.demand.groups.clear();
  for (const auto state : {PodState::gated, PodState::unschedulable, PodState::pulling}) {
    scene.supply.jobless = {{"p", group(1), state, k_now, false, {}, false, "new disks"}};
    const auto plan = scene.plan();
    REQUIRE(plan.removals.size() == 1);
    CHECK(plan.removals[0].reason == "drained: new disks");
  }
}

TEST_CASE("drained: new pods are kept off nodes, which are no nodes where pilots fail") {
  Scene scene;
  scene.drains(Kind::node, "n1");
  scene.drains(Kind::node, "n2", Mode::kill);
  const auto plan = scene.plan();
  CHECK(plan.avoid.empty());
  CHECK(plan.decisions[0].submit == 3);
  CHECK(plan.decisions[0].reason().ends_with("; keeps off drained nodes n1, n2"));
}

TEST_CASE("drained: a place gets none, the others get its share") {
  Scene scene;
  scene.demand.groups.erase(group(2));
  set_places(scene.policy, {{.name = "east", .image = "east/img"}, {.name = "west", .image = "west/img"}});
  scene.drains(Kind::place, "east", Mode::kill);
  auto plan = scene.plan();
  REQUIRE(plan.decisions.size() == 1);
  CHECK(plan.decisions[0].submit == 3);
  CHECK(plan.decisions[0].places[1].submit == 3);
  scene.drains(Kind::place, "west");
  plan = scene.plan();
  CHECK(plan.decisions[0].submit == 0);
  CHECK(plan.decisions[0].reason().find("east: drained for 90 s: new disks; west: drained") !=
        std::string::npos);
}

TEST_CASE("drained: pods that run are told once, or removed, where they are seen") {
  const auto running = [](const char* name, std::int64_t cpus, const char* node) {
    return Pod{.name = name,
               .group = group(cpus),
               .image = "img",
               .state = PodState::unregistered,
               .since = k_now,
               .node = node};
  };
  std::vector<Pod> pods = {running("east/a", 1, "east/n1"), running("east/b", 2, "east/n2"),
                           running("west/a", 2, "west/n1"), running("west/b", 3, "west/n1")};
  const auto names = [&](const DrainList& list, const std::map<std::string, PlaceSupply>& places = {}) {
    std::string all;
    for (const auto& one : drainings(pods, places, list))
      all += fmt::format("{}{}:{}", all.empty() ? "" : " ", one.pod, to_string(one.mode));
    return all;
  };
  const Drained of_group{Kind::group, group(2).hash(), Mode::drain, "why", k_now},
      of_node{Kind::node, "east/n2", Mode::kill, "why", k_now},
      of_place{Kind::place, "west", Mode::drain, "why", k_now};
  CHECK(names({}).empty());
  CHECK(names({of_group}) == "east/b:drain west/a:drain");
  CHECK(names({of_group, of_node}) == "east/b:kill west/a:drain");
  CHECK(names({of_place}) == "west/a:drain west/b:drain");
  pods[2].told_drained = true;
  CHECK(names({of_place}) == "west/b:drain");
  pods[1].told_drained = true;
  CHECK(names({of_node}) == "east/b:kill");
  pods[1].leaving = true;
  CHECK(names({of_node}).empty());
  for (const auto state : {PodState::succeeded, PodState::failed}) {
    auto over = pods;
    over[3].state = state;
    CHECK(drainings(over, {}, {of_place}).empty());
  }
  pods[3].jobless = true;
  CHECK(names({of_place}).empty());
  pods[3].jobless = false;
  std::map<std::string, PlaceSupply> places;
  places["west"];
  CHECK(names({of_place}, places) == "west/b:drain");
  places["west"].unseen = "no answer";
  CHECK(names({of_place}, places).empty());
  mark_drained(pods, {of_group});
  CHECK(std::ranges::count(pods, SharedText("why"), &Pod::drained) == 2);
  mark_drained(pods, {{Kind::group, group(2).hash(), Mode::drain, "again", k_now}});
  CHECK(std::ranges::count(pods, SharedText("why"), &Pod::drained) == 2);
}

TEST_CASE("drained: of two entries the one that kills counts, and a node is no place of its name") {
  const Drained kills{Kind::group, group(1).hash(), Mode::kill, "why", k_now},
      drains{Kind::node, "n1", Mode::drain, "why", k_now};
  const std::vector<Pod> pods = {{.name = "a",
                                  .group = group(1),
                                  .image = "img",
                                  .state = PodState::unregistered,
                                  .since = k_now,
                                  .node = "n1"}};
  const std::vector<Drained> list = {kills, drains};  // the entries point into it
  const auto entries = entries_of(pods, list);
  REQUIRE(entries.at(0) != nullptr);
  CHECK(entries[0]->mode == Mode::kill);
  CHECK(drained({drains}, Kind::place, "n1") == nullptr);
  CHECK(drained({drains}, Kind::node, "n1") != nullptr);
}

TEST_CASE("drained: of very many pods a thousand are told at a time") {
  std::vector<Pod> pods;
  pods.reserve(1001);
  for (int i = 0; i < 1001; ++i)
    pods.push_back({.name = fmt::format("p{}", i),
                    .group = group(1),
                    .image = "img",
                    .state = PodState::unregistered,
                    .since = k_now,
                    .node = "n"});
  CHECK(drainings(pods, {}, {{Kind::node, "n", Mode::drain, "why", k_now}}).size() == 1000);
}

TEST_CASE("drained: groups and places are no nodes, and what begins later has lasted no time") {
  Scene scene;
  scene.drains(Kind::group, group(1).hash());
  scene.policy.drained.back().since = k_now + Seconds(5);
  const auto plan = scene.plan();
  CHECK(plan.decisions[0].reason() == "drained for 0 s: new disks");
  CHECK(plan.decisions[1].reason().find("drained") == std::string::npos);
}
