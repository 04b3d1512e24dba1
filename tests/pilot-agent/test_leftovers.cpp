// What jobs have left in shared places, by itself; test_core_left.cpp has what the core makes of it.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/leftovers.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

struct SharedPlaces {
  explicit SharedPlaces(int count) {
    for (int i = 0; i < count; ++i) {
      Container& container = containers.add("payload-" + std::to_string(i));
      container.glue = static_cast<GlueId>(i) + 1;
      container.state = Idle{};
    }
  }
  std::vector<Clear> cleared() {
    leftovers.clear(now);
    return taken<Clear>(actions);
  }

  Policy policy;
  Actions actions;
  Containers containers{actions, {}};
  Leftovers leftovers{policy, containers, actions};
  Time now{1000s};
};

}  // namespace

TEST_CASE("leftovers: an idle glue clears up once the job's container has ended") {
  SharedPlaces places(2);
  places.leftovers.add({20001, 7}, "payload-1");
  CHECK(places.leftovers.users() == std::set<User>{{20001, 7}});
  CHECK(places.cleared().empty());
  places.leftovers.ended("payload-0");
  CHECK(places.cleared().empty());
  places.leftovers.ended("payload-1");
  const auto clears = places.cleared();
  REQUIRE(clears.size() == 1);
  CHECK(clears.front().glue == 1);
  CHECK(clears.front().uid == 20001);
  CHECK(clears.front().gid == 7);
  const auto* clearing = std::get_if<Clearing>(&places.containers[0].state);
  REQUIRE(clearing != nullptr);
  CHECK(clearing->until == places.now + places.policy.ending_patience);
  CHECK(clearing->id == clears.front().job);
  CHECK(clearing->pulse.next == places.now + places.policy.beat);
  CHECK(places.leftovers.users() == std::set<User>{{20001, 7, true}});
  CHECK(places.cleared().empty());
}

TEST_CASE("leftovers: what glue is asked to remove is over when it says so, or is gone") {
  SharedPlaces places(1);
  places.leftovers.add({20001, 7}, "gone");
  places.leftovers.ended("gone");
  const auto clears = places.cleared();
  REQUIRE(clears.size() == 1);
  Container& container = places.containers[0];
  places.now += 5s;
  wire::JobEnded ended;
  std::set<User> users;
  bool clean = true, over = true;
  SUBCASE("it has removed all of it") {
    places.leftovers.cleared(container, ended, places.now);
  }
  SUBCASE("it has not, and only a fresh container may try again") {
    clean = ended.clean = false;
    users = {{20001, 7}};
    places.leftovers.cleared(container, ended, places.now);
  }
  SUBCASE("it cannot") {
    clean = false;
    users = {{20001, 7}};
    places.leftovers.not_cleared(container, places.now);
  }
  SUBCASE("it is gone") {
    over = false;
    users = {{20001, 7}};
    places.leftovers.glue_gone(container);
  }
  const auto jobs_over = taken<JobOver>(places.actions);
  REQUIRE(jobs_over.size() == 1);
  CHECK(jobs_over.front().job == clears.front().job);
  CHECK((container.kind() == State::idle) == over);
  CHECK((container.last_used == places.now) == over);
  CHECK(container.spoiled != clean);
  CHECK(container.unclean != clean);
  if (over) CHECK(places.leftovers.users() == users);
}

TEST_CASE("leftovers: a glue that is away, busy or has failed at it is not asked") {
  SharedPlaces places(1);
  places.leftovers.add({20001, 7}, "gone");
  places.leftovers.ended("gone");
  SUBCASE("away") {
    places.containers[0].glue = 0;
  }
  SUBCASE("busy") {
    places.containers[0].state = Reserved{};
  }
  SUBCASE("failed") {
    places.containers[0].unclean = true;
  }
  CHECK(places.cleared().empty());
}

TEST_CASE("leftovers: nothing is removed under a job of the user, nor asked of two glues") {
  SharedPlaces places(3);
  Running running;
  running.job.request.uid = 20001;
  places.containers[0].state = running;
  for (const uid_t uid : {20001U, 20002U}) places.leftovers.add({uid, 7}, "gone");
  places.leftovers.ended("gone");
  const auto clears = places.cleared();
  REQUIRE(clears.size() == 1);
  CHECK(clears.front().uid == 20002);
  CHECK(places.containers[2].kind() == State::idle);
  CHECK(places.leftovers.users() == std::set<User>{{20001, 0}, {20001, 7}, {20002, 7, true}});
}

TEST_CASE(
    "leftovers: what an earlier agent's jobs left is removed once the pod is known and all have ended") {
  SharedPlaces places(1);
  places.leftovers.inherit({{20001, 7, true}});
  places.leftovers.begin(places.now);
  CHECK(places.leftovers.earlier_clears(20001));
  CHECK_FALSE(places.leftovers.earlier_clears(20002));
  CHECK(places.cleared().empty());
  kube::Pod pod;
  pod.containers = {{"pilot", "p", {"/usr/bin/pilot-agent"}}};
  places.containers.begin(pod);
  places.containers[0].inherited = true;
  CHECK(places.cleared().empty());
  SUBCASE("its glue had time enough") {
    REQUIRE(places.leftovers.next_deadline() == places.now + 30s);
    places.leftovers.on_time(places.now + 30s);
    CHECK_FALSE(places.leftovers.earlier_clears(20001));
    CHECK_FALSE(places.leftovers.next_deadline());
  }
  places.containers[0].inherited = false;
  CHECK(places.cleared().size() == 1);
}
