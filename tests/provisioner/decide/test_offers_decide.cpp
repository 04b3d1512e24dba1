// What the negotiator's word on offered pods changes, and which rules say nothing where no pod is made.
#include <doctest/doctest.h>

#include <algorithm>

#include "provisioner/decide/decide.hpp"
#include "tests/provisioner/decide/scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::decide_test;
using Verdict = Decision::Verdict;
using State = Offers::State;

namespace {

bool says(const Decision& decision, Rule rule) {
  return std::ranges::count(decision.steps, rule, &Step::rule) > 0;
}

Decision offered(const Offers& offers, std::int64_t idle) {
  Scene scene;
  scene.jobs(1, idle).offers = offers;
  return scene.one();
}

}  // namespace

TEST_CASE("offers: nothing is decided before the negotiator has spoken, if it is asked at all") {
  const auto asked = offered({.state = State::asked, .queried = 40, .decides = true}, 40);
  CHECK(asked.verdict == Verdict::limited);
  CHECK(asked.submit == 0);
  CHECK(asked.target == 1);
  REQUIRE(asked.steps.size() == 1);
  CHECK(says(asked, Rule::negotiation));
  CHECK(offered({.state = State::asked, .queried = 40, .decides = false}, 40).submit == 11);
  CHECK(offered({.state = State::asked, .queried = 0, .decides = true}, 40).submit == 11);
}

TEST_CASE("offers: where no pilot has joined one is made, which is said where it lowers something") {
  const auto first = offered({.state = State::no_pilot, .queried = 40, .decides = true}, 1);
  CHECK(says(first, Rule::first_pilot));
  CHECK(first.submit == 1);
  CHECK_FALSE(says(offered({.state = State::no_pilot, .queried = 1, .decides = true}, 1), Rule::first_pilot));
  CHECK_FALSE(
      says(offered({.state = State::no_pilot, .queried = 40, .decides = false}, 1), Rule::first_pilot));
}

TEST_CASE("offers: what the negotiator would use is told where it is less than what is asked for") {
  const Offers offers{.state = State::answered, .offered = 11, .matched = 3, .queried = 40, .decides = true};
  CHECK(says(offered(offers, 3), Rule::negotiator));
  CHECK_FALSE(
      says(offered({.state = State::answered, .offered = 3, .matched = 3, .queried = 40, .decides = true}, 3),
           Rule::negotiator));
}

TEST_CASE("offers: a group is decided on while the query has jobs of it") {
  for (const std::int64_t queried : {0, 5}) {
    Scene scene;
    scene.demand.groups[group(1)].offers =
        Offers{.state = State::answered, .queried = queried, .decides = true};
    CHECK(scene.plan().decisions.size() == (queried > 0 ? 1 : 0));
  }
}

TEST_CASE("offers: jobs are left to running pods until the negotiator has answered") {
  for (const auto state : {State::no_pilot, State::answered}) {
    Scene scene;
    auto& jobs = scene.jobs(1, 2);
    jobs.largest = of_job(1, 2048, 1000, 0);
    jobs.offers = Offers{.state = state, .offered = 2, .matched = 2, .queried = 2, .decides = true};
    ++scene.supply.groups[group(1)].claimed;
    scene.supply.rooms.push_back({group(1), of_slot(8, 65536, 7'900'000, 0, 8), true});
    CHECK(scene.one().fit == (state == State::answered ? 0 : 2));
  }
}

TEST_CASE("decide: what new pods are kept from is said where there are new pods") {
  for (const std::int64_t waiting : {0, 30}) {
    Scene scene;
    scene.jobs(1, 40);
    scene.pods(1, waiting, 0, 0);
    scene.history.nodes["bad"] = {.since = scene.now, .until = scene.now + Seconds(60), .pause = Seconds(60)};
    scene.policy.drained = {{.kind = Drained::Kind::node, .name = "old", .reason = "disks"}};
    const auto decision = scene.one();
    CHECK(says(decision, Rule::avoids) == (waiting == 0));
    CHECK(says(decision, Rule::drained_nodes) == (waiting == 0));
  }
}
