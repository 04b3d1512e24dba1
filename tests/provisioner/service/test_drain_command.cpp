#include "provisioner/service/drain_command.hpp"

#include <doctest/doctest.h>

#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

// One pod waits, one has two jobs, one has ended; another group has one.
struct Scene {
  Observation seen;
  std::vector<PlacePolicy> places;
  DrainList list;

  Scene() {
    seen.at = k_now;
    const auto add = [this](const char* name, std::int64_t cpus, PodState state, const char* node) {
      seen.pods.push_back({.name = name,
                           .group = group(cpus),
                           .image = "img",
                           .state = state,
                           .since = k_now - Seconds(30),
                           .node = node});
    };
    add("waits", 1, PodState::unschedulable, "");
    seen.pods.back().jobless = true;
    add("works", 1, PodState::unregistered, "n1");
    add("over", 1, PodState::succeeded, "n1");
    add("other", 2, PodState::unregistered, "n1");
    seen.slots = {{"works", true, "alice"}, {"works", true, "bob"}, {"works", false}, {"other", false}};
    seen.demand.groups[group(3)].idle = 7;
  }
  Result<Drained> named(const DrainOptions& what) const { return entry_named(what, seen, places, list); }
  std::string told(const DrainOptions& what) const {
    return describe(named(what).value(), what, seen, k_now + Seconds(60));
  }
};

DrainOptions of_group(const std::string& name, std::optional<Drained::Mode> mode = Drained::Mode::drain) {
  return {.mode = mode, .group = name, .reason = "new disks"};
}

}  // namespace

TEST_CASE("drain: it shows the pods that are concerned, and what would happen to them") {
  const Scene scene;
  const auto text = scene.told(of_group(group(1).hash()));
  CHECK(text ==
        fmt::format("group {}: 2 pods, 2 jobs run in them\n"
                    "POD    NODE  STATE          SINCE  JOBS\n"
                    "waits  -     unschedulable  90 s   0\n"
                    "works  n1    claimed        90 s   2\n"
                    "No pods are made for it, until `provisioner undrain`. Removed without having run: 1. "
                    "Told to take no more jobs, and to end after their last one: 1.\n",
                    group(1).hash()));
  CHECK(scene.told(of_group(group(1).hash(), Drained::Mode::kill))
            .ends_with("Removed while they run: 1; jobs that are vacated, and run again elsewhere: 2.\n"));
  const auto of_node = scene.told({.mode = Drained::Mode::drain, .node = "n1", .reason = "r"});
  CHECK(of_node.starts_with("node n1: 2 pods, 2 jobs run in them\n"));
  CHECK(of_node.find("other  n1    unmatched") != std::string::npos);
}

TEST_CASE("drain: a group is named by its hash or its size, and must be there") {
  const Scene scene;
  CHECK(scene.named(of_group(group(3).name())).value().name == group(3).hash());
  const auto none = scene.named(of_group("nosuch"));
  REQUIRE(!none);
  CHECK(none.error().message().find(group(2).hash() + "  " + group(2).name()) != std::string::npos);
  CHECK(!scene.named({.mode = Drained::Mode::drain, .group = group(1).hash()}));  // no reason
}

TEST_CASE("drain: places and their nodes") {
  Scene scene;
  const DrainOptions west{.mode = Drained::Mode::kill, .place = "west", .reason = "r"},
      plain{.mode = Drained::Mode::drain, .node = "n1", .reason = "r"},
      of_west{.mode = Drained::Mode::drain, .node = "west/n1", .reason = "r"};
  CHECK(!scene.named(west));
  CHECK(scene.named(plain));
  CHECK(!scene.named(of_west));
  scene.places = {{.name = "east"}, {.name = "west"}};
  CHECK(scene.named(west).value().kind == Drained::Kind::place);
  CHECK(!scene.named(plain));
  CHECK(scene.named(of_west));
}

TEST_CASE("drain: a later word replaces an earlier one, and undrain takes it back") {
  Scene scene;
  const auto drain = of_group(group(1).hash()), kill = of_group(group(1).hash(), Drained::Mode::kill),
             back = of_group(group(1).hash(), std::nullopt);
  CHECK(!scene.named(back));
  scene.list = changed_by({}, scene.named(drain).value(), drain);
  REQUIRE(scene.list.size() == 1);
  scene.list = changed_by(scene.list, scene.named(kill).value(), kill);
  REQUIRE(scene.list.size() == 1);
  CHECK(scene.list[0].mode == Drained::Mode::kill);
  // Also when nobody asks for it any more.
  scene.seen = {};
  CHECK(changed_by(scene.list, scene.named(back).value(), back).empty());
}
