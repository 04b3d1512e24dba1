#include "provisioner/decide/share.hpp"

#include <doctest/doctest.h>

#include "provisioner/decide/places.hpp"
#include "tests/provisioner/decide/inputs.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

// Owners with a group each, by its CPUs.
struct Scene : Inputs {
  Scene() { policy.max_pods_per_cluster = 1000; }
  void jobs(std::int64_t cpus, const std::string& owner, std::int64_t idle = 4000) {
    demand.groups[group(cpus)].idle += idle;
    demand.groups[group(cpus)].owners[owner] += idle;
  }
  // With groups 1 and 2, the first with a third of the other's priority, and 40 pods for both.
  void two_owners() {
    jobs(1, "alice");
    jobs(2, "bob");
    priority("alice", 500);
    priority("bob", 1500);
    policy.settings.max_pods = 40;
  }
  void priority(const std::string& owner, double number) { demand.priorities.of[owner] = number; }
  void quota(double left, std::initializer_list<const char*> owners) {
    demand.priorities.quota_left["physics"] = left;
    for (const auto* owner : owners) demand.priorities.group_of[owner] = "physics";
  }
  std::map<std::int64_t, Decision> decisions() const {
    std::map<std::int64_t, Decision> result;
    for (const auto& d : decided().decisions) result[d.group.cpus] = d;
    return result;
  }
};

}  // namespace

TEST_CASE("share: who has a third of another's priority gets three times as many pods") {
  Scene scene;
  scene.two_owners();
  auto got = scene.decisions();
  CHECK(got[1].submit == 30);
  CHECK(got[2].submit == 10);
  CHECK(text(got[2].steps.back()) == "priorities: the best of its owners' is 1500.0, of all 500.0");
  CHECK(text(got[1].steps.back()) == "max_pods: 265 -> 30");
  // What they have counts in the same way, with a job or waiting for one.
  scene.supply.claimed_by_owner["bob"] = 10;
  scene.supply.groups[group(2)].claimed = 10;
  got = scene.decisions();
  CHECK(got[1].submit == 30);
  CHECK(got[2].submit == 0);
  scene.supply = {};
  scene.supply.groups[group(1)].waiting = 20;
  got = scene.decisions();
  CHECK(got[1].submit == 10);
  CHECK(got[2].submit == 10);
}

TEST_CASE("share: priorities hold over several places") {
  Scene scene;
  set_places(scene.policy,
             {{.name = "east", .image = "east/img", .weight = 3, .max_pods_per_cluster = 1000},
              {.name = "west", .image = "west/img", .weight = 1, .max_pods_per_cluster = 1000}});
  scene.two_owners();
  auto got = scene.decisions();
  CHECK(got[1].submit == 30);
  CHECK(got[2].submit == 10);
  CHECK(got[1].places[0].submit + got[2].places[0].submit == 30);
}

TEST_CASE("share: of equal owners another one comes first each time") {
  Scene scene;
  scene.jobs(1, "alice");
  scene.jobs(2, "bob");
  scene.policy.settings.max_pods = 1;
  CHECK(scene.decisions()[1].submit == 1);
  scene.history.cycle = 1;
  CHECK(scene.decisions()[2].submit == 1);
}

TEST_CASE("share: a cap by cores counts what pods have, and leaves the rest to smaller ones") {
  Scene scene;
  scene.jobs(2, "alice");
  scene.jobs(16, "bob");
  scene.supply.groups[group(16)].claimed = 2;
  scene.policy.settings.max_cores = 100;
  auto got = scene.decisions();
  // One each in turn: 68 cores are three of 16 and the rest, ten, of 2.
  CHECK(got[16].submit == 3);
  CHECK(got[2].submit == 10);
  CHECK(text(got[16].steps.back()) == "max_cores: 265 -> 3");
  scene.policy.settings.max_cores = 47;
  got = scene.decisions();
  CHECK(got[16].submit == 0);
  CHECK(got[2].submit == 7);
  scene.policy.settings.max_cores = 20;
  CHECK(scene.decisions()[2].submit == 0);
}

TEST_CASE("share: without priorities the shares are equal, and it is told why") {
  Scene scene;
  scene.jobs(1, "alice");
  scene.jobs(2, "bob");
  scene.policy.settings.max_pods = 40;
  scene.demand.priorities = {.unknown = "no accounting ads"};
  auto got = scene.decisions();
  CHECK(got[1].submit == 20);
  CHECK(got[2].submit == 20);
  CHECK(text(got[2].steps.back()) == "max_pods: 265 -> 20");
  CHECK(scene.decided().equal_shares == "no accounting ads");
  // Nor where all have the same one, or nothing limits.
  scene.demand.priorities = {};
  scene.priority("alice", 7);
  scene.priority("bob", 7);
  got = scene.decisions();
  CHECK(got[1].submit == 20);
  CHECK(text(got[2].steps.back()) == "max_pods: 265 -> 20");
  scene.priority("bob", 7000);
  scene.policy.settings.max_pods = 0;
  CHECK(scene.decisions()[2].submit == 265);
}

TEST_CASE("share: jobs count as far as the quota of their owners' group in the pool goes") {
  Scene scene;
  scene.jobs(1, "alice", 20);
  scene.jobs(2, "bob");
  scene.jobs(4, "carol", 40);
  scene.quota(30, {"alice", "bob"});
  auto got = scene.decisions();
  CHECK(got[1].counted == 20);
  CHECK(got[2].counted == 5);
  CHECK(got[2].submit == 2);
  CHECK(text(got[2].steps.front()) == "group_quota physics: 5 of 4000 idle jobs count");
  CHECK(got[4].submit == 11);
  // Those of others in the same group of jobs count all the same, and so does the cap.
  scene.jobs(2, "carol", 8);
  scene.quota(0, {"alice", "bob"});
  got = scene.decisions();
  CHECK(got[1].submit == 0);
  CHECK(got[1].verdict == Decision::Verdict::enough);
  CHECK(got[2].counted == 8);
  scene.policy.settings.max_pods_per_owner = 3;
  scene.quota(2, {"alice", "bob"});
  got = scene.decisions();
  CHECK(got[1].counted == 2);
  CHECK(got[2].counted == 3);
}

TEST_CASE("share: jobs to come do not count where their owner's quota is used up") {
  Scene scene;
  scene.jobs(1, "alice", 20);
  scene.demand.groups[group(1)].unmaterialized = 100;
  scene.quota(50, {"alice"});
  CHECK(scene.decisions()[1].counted == 120);
  scene.quota(10, {"alice"});
  CHECK(scene.decisions()[1].counted == 10);
}
