#include "tests/provisioner/why/asked_world.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::why_test;

namespace {

// The rules that decide() knows, in places as well, each as it is told of.
const auto one_runs = [](std::int64_t PolicySettings::*limit) {
  return [limit](World& w) {
    w.pod(PodState::unregistered);
    w.slots = {{"pod-0", true, "bob"}};
    w.policy.settings.*limit = 1;
  };
};
const auto one_waits = [](std::int64_t PolicySettings::*limit) {
  return [limit](World& w) {
    w.pod(PodState::pulling);
    w.others_idle = 40;
    w.policy.settings.*limit = 1;
  };
};
const auto in_places = [](const PlacePolicy& east, const std::function<void(World&)>& more) {
  return [east, more](World& w) {
    auto west = east;
    west.name = "west";
    west.image = "west/img";
    set_places(w.policy, {east, west});
    more(w);
  };
};
const auto small_nodes = [](World& w) {
  for (const auto* place : {"east", "west"}) {
    w.capacity.places[place].needs[Group()] = {1000, 4096, 0, 0, 1};
    w.capacity.places[place].nodes = {{500, 1 << 30, 1 << 30, 0, 10}};
  }
};
const auto refused_by_api = [](bool by_quota) {
  return [by_quota](World& w) {
    w.history.refusals[{Group(), ""}] = {.until = k_now + Seconds(50),
                                         .pause = Seconds(50),
                                         .by_quota = by_quota,
                                         .words = "403: quota: larger"};
  };
};
const PlacePolicy k_east = {.name = "east", .image = "east/img"};
const std::vector<Case> k_rules = {
    {"the API refuses", refused_by_api(false), "pod-refused", "stops", "the pool's operator",
     "refused: 403: quota: larger: asked again in 50 s"},
    {"the API refuses for a quota", refused_by_api(true), "quota", "stops", "the site's admin",
     "quota_refused: 403: quota: larger: asked again in 50 s"},
    {"the API may be asked again",
     [](World& w) {
       refused_by_api(false)(w);
       w.history.refusals.begin()->second.until = k_now;
     },
     "pod-refused", "stops", "the pool's operator", "refused: 403: quota: larger: one pod tries"},
    {"max_pods_per_group", one_runs(&PolicySettings::max_pods_per_group), "cap", "stops",
     "the pool's operator", "max_pods_per_group: 1 -> 0"},
    {"max_running_per_group", one_runs(&PolicySettings::max_running_per_group), "cap", "stops",
     "the pool's operator", "max_running_per_group: 1 -> 0"},
    {"max_running", one_runs(&PolicySettings::max_running), "cap", "stops", "the pool's operator",
     "max_running: 1 -> 0"},
    {"max_idle_per_group", one_waits(&PolicySettings::max_idle_per_group), "cap", "note",
     "the pool's operator", "max_idle_per_group: 10 -> 0"},
    {"max_idle", one_waits(&PolicySettings::max_idle), "cap", "note", "the pool's operator",
     "max_idle: 10 -> 0"},
    {"ramp_up_per_group", one_waits(&PolicySettings::ramp_up_per_group), "curb", "note", "nobody",
     "ramp_up_per_group: 10 -> 1"},
    {"avoided nodes",
     [](World& w) {
       w.history.nodes["bad"] = {.since = k_now, .until = k_now + Seconds(99), .pause = {}, .failed = 3};
     },
     "node-avoided", "note", "the site's admin", "avoids bad"},
    {"a group that is drained",
     [](World& w) {
       w.policy.drained = {
           {Drained::Kind::group, Group().hash(), Drained::Mode::drain, "new disks", k_now - Seconds(60)}};
     },
     "drained", "stops", "the pool's operator", "drained for 60 s: new disks"},
    {"places that are drained",
     in_places(
         k_east,
         [](World& w) {
           for (const auto* place : {"east", "west"})
             w.policy.drained.push_back({Drained::Kind::place, place, Drained::Mode::kill, "power", k_now});
         }),
     "drained", "stops", "the pool's operator", "east: drained for 0 s: power"},
    {"nodes that are drained",
     [](World& w) {
       w.policy.drained = {{Drained::Kind::node, "n1", Drained::Mode::drain, "new disks", k_now}};
     },
     "node-drained", "note", "the pool's operator", "keeps off drained nodes n1"},
    {"waste",
     [](World& w) {
       w.others_idle = 40;
       w.wasted = 3;
     },
     "waste", "note", "the pool's operator", "3 pilots wasted, 0 used: 11 -> 3"},
    {"as many wait in each place as may",
     in_places({.name = "east", .image = "east/img", .max_pods_per_cluster = 1},
               [](World& w) {
                 w.others_idle = 40;
                 for (const auto* place : {"east", "west"}) w.places[place].groups[Group()].waiting = 1;
               }),
     "enough", "waits", "the pool's operator", "east: max_pods_per_cluster 1: 1 wait"},
    {"max_pods of each place",
     in_places({.name = "east", .image = "east/img", .max_pods = 1},
               [](World& w) {
                 for (const auto* place : {"east", "west"}) w.places[place].groups[Group()].claimed = 1;
               }),
     "cap", "stops", "the pool's operator", "east: max_pods 1: has 1"},
    {"the quota of each place",
     in_places(k_east,
               [](World& w) {
                 for (const auto* place : {"east", "west"}) {
                   w.capacity.places[place].needs[Group()] = {1000, 4096, 0, 0, 1};
                   w.capacity.places[place].quota_left = Resources{.pods = 0};
                 }
               }),
     "quota", "stops", "the site's admin", "east: quota"},
    {"larger than every node of each place", in_places(k_east, small_nodes), "too-large", "stops",
     "the job's owner", "east: larger than every node"},
    {"breakers in places",
     in_places(k_east,
               [](World& w) {
                 for (const auto* place : {"east/img", "west/img"})
                   w.history.breakers[{Group(), place}] = {.open = true,
                                                           .opened = k_now - Seconds(600),
                                                           .closed = {},
                                                           .next_canary = k_now + Seconds(99),
                                                           .pause = {}};
               }),
     "breaker", "stops", "the pool's operator", "east: breaker open for 10 min: next try in 99 s"},
    {"the API of each place refuses",
     in_places(k_east,
               [](World& w) {
                 for (const auto* place : {"east", "west"})
                   w.history.refusals[{Group(), place}] = {
                       .until = k_now + Seconds(50), .pause = {}, .by_quota = false, .words = "422"};
               }),
     "pod-refused", "stops", "the pool's operator", "east: refused: 422: asked again in 50 s"},
    // Words of others, and names, that sound like rules.
    {"the words of a backend", [](World& w) { w.capacity.unservable[Group()] = "quota of volumes: 2 > 1"; },
     "unservable", "stops", "the pool's operator", "quota of volumes: 2 > 1"},
    {"a place that is called like a rule",
     in_places({.name = "breaker", .image = "east/img", .max_pods = 1},
               [](World& w) {
                 for (const auto* place : {"breaker", "west"}) w.places[place].groups[Group()].claimed = 1;
               }),
     "cap", "stops", "the pool's operator", "breaker: max_pods 1: has 1"},
};

}  // namespace

TEST_CASE("why: each rule of the decision, by its key") {
  for (const auto& one : k_rules) {
    CAPTURE(one.name);
    World world;
    one.provoke(world);
    // By the running instance's status, and where there is none.
    for (const bool status : {true, false}) {
      world.has_status = status;
      const auto all = ask(world);
      const auto* found = find(all, one.key);
      CAPTURE(all.front().key);
      CAPTURE(all.front().seen);
      REQUIRE(found);
      CHECK(to_string(found->weight) == one.weight);
      CHECK(to_string(found->who) == one.who);
      CHECK_MESSAGE(found->seen.find(one.seen) != std::string::npos, found->seen);
      CHECK((found->weight == Finding::Weight::note || all.front().key == one.key || !status));
    }
  }
}

TEST_CASE("why: a rule that only lowers the number is no reason") {
  World world;
  world.pod(PodState::pulling);
  world.policy.settings.max_pods = 1;
  world.others_idle = 40;
  const auto all = ask(world);
  CHECK(all.front().key == "pilot-pulls");
  REQUIRE(find(all, "cap"));
  CHECK(find(all, "cap")->weight == Finding::Weight::note);
}

TEST_CASE("why: that others have a better priority in the pool is told beside the limit") {
  World world;
  world.others.cpus = 2;
  world.bobs_idle = 400;
  world.policy.settings.max_pods = 1;
  world.history.cycle = 1;  // it is bob's turn, were they equal
  world.priorities.of = {{"alice", 9000}, {"bob", 500}};
  const auto all = ask(world);
  CHECK(all.front().key == "cap");
  REQUIRE(find(all, "priority"));
  CHECK(find(all, "priority")->seen == "priorities: the best of its owners' is 9000.0, of all 500.0");
  CHECK(find(all, "priority")->weight == Finding::Weight::note);
  world.priorities.of["alice"] = 500;
  CHECK(!find(ask(world), "priority"));
}
