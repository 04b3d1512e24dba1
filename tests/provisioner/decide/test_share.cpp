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

TEST_CASE("share: the best of all is the best of those whose jobs ask for more pods") {
  Scene scene;
  scene.two_owners();
  const auto says_so = [&] {
    return text(scene.decisions()[2].steps.back()) ==
           "priorities: the best of its owners' is 1500.0, of all 500.0";
  };
  CHECK(says_so());
  SUBCASE("not of one whose pods wait already") {
    scene.jobs(4, "carol", 4);
    scene.supply.groups[group(4)].waiting = 10;
  }
  SUBCASE("not of nobody, where pods have no jobs") {
    scene.supply.groups[group(4)].claimed = 10;
  }
  SUBCASE("nor is another of its owners the best") {
    scene.jobs(2, "zoe", 10);
    scene.priority("zoe", 3000);
  }
  SUBCASE("not of one who has no jobs any more") {
    scene.demand.groups[group(2)].owners["zed"] = 0;
  }
  CHECK(says_so());
  CHECK(scene.decisions()[1].submit > 0);
}

TEST_CASE("share: jobs that are yet to come have no owner who could come later") {
  Scene scene;
  scene.jobs(1, "alice");
  scene.demand.groups[group(2)].unmaterialized = 4000;
  scene.demand.priorities.newcomer = 10;
  scene.policy.settings.max_pods = 40;
  auto got = scene.decisions();
  CHECK(got[1].submit == 20);
  CHECK(text(got[2].steps.back()) == "max_pods: 265 -> 20");
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

TEST_CASE("share: it is told which limit came first, whoever asks again") {
  Scene scene;
  scene.jobs(16, "alice");
  scene.jobs(16, "bob");
  scene.jobs(1, "carol");
  scene.priority("alice", 100);
  scene.priority("bob", 1);
  scene.priority("carol", 1);
  scene.policy.settings.max_cores = 24;
  scene.policy.settings.max_pods = 5;
  const auto got = scene.decisions();
  REQUIRE(got.at(16).submit == 1);
  REQUIRE(got.at(1).submit == 4);
  CHECK(got.at(16).reason().find("max_cores: 515 -> 1") != std::string::npos);
}

TEST_CASE("share: of an owner's groups each gets its turn, also after one that gets none") {
  Scene scene;
  for (const auto cpus : {1, 2, 16}) scene.jobs(cpus, "alice");
  scene.history.cycle = 2;  // the largest comes first
  scene.policy.settings.max_cores = 15;
  scene.policy.settings.max_pods = 1;
  CHECK(scene.decisions()[1].submit == 1);
}

TEST_CASE("share: a quota limits only groups of which it is known what a pod needs") {
  Scene scene;
  scene.jobs(1, "alice");
  scene.jobs(2, "bob");
  scene.capacity.quota_left = Resources{.cpu_milli = 4000, .pods = 1000};
  scene.capacity.needs[group(2)] = {.cpu_milli = 2000};
  const auto got = scene.decisions();
  CHECK(got.at(1).submit == 265);
  CHECK(got.at(2).submit == 2);
}

TEST_CASE("share: a group is without a node once all its pods have been for longer than the limit") {
  PolicySettings settings;
  settings.unschedulable_limit = Seconds(600);
  const Time now{Seconds(1'000'000)};
  GroupSupply pods;
  CHECK_FALSE(homeless(pods, settings, now));
  pods.waiting = pods.unschedulable = 3;
  pods.unschedulable_since = now - Seconds(600);
  CHECK_FALSE(homeless(pods, settings, now));
  CHECK(homeless(pods, settings, now + Seconds(1)));
  pods.unknown = 1;
  CHECK(homeless(pods, settings, now + Seconds(1)));
  pods.claimed = 1;
  CHECK_FALSE(homeless(pods, settings, now + Seconds(1)));
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

TEST_CASE("share: a job takes as much of a quota as it has cores") {
  Scene scene;
  scene.jobs(2, "alice", 10);
  scene.jobs(4, "bob", 10);
  scene.quota(30, {"alice", "bob"});
  auto got = scene.decisions();
  CHECK(got[2].counted == 10);
  CHECK(got[4].counted == 2);
}

TEST_CASE("share: who has more pods than the cap has no more of them, and no fewer for others") {
  Scene scene;
  scene.jobs(1, "alice", 20);
  scene.jobs(1, "bob", 20);
  scene.policy.settings.max_pods_per_owner = 5;
  scene.supply.claimed_by_owner["alice"] = 9;
  CHECK(scene.decisions()[1].counted == 5);
}
