#include "provisioner/offline/offers.hpp"

#include <doctest/doctest.h>

#include "provisioner/decide/decide.hpp"
#include "provisioner/service/report.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using State = Offers::State;

namespace {

constexpr Time k_put{Seconds(1'000'000)};      // when ads were put into the collector
constexpr Time k_cycle = k_put + Seconds(60);  // a negotiation cycle

struct Scene {
  Negotiation seen;
  Demand demand;

  Scene() {
    seen.cycle = k_cycle;
    seen.pilots[0] = true;
    auto& jobs = demand.groups[group(1)];
    jobs.idle = 40;
    jobs.unmaterialized = 7;
    jobs.owners = {{"alice", 30}, {"bob", 10}};
  }
  // So many ads of the group, of which the first so many were matched at that time.
  void ads(std::int64_t offered, std::int64_t matched, Time at = k_cycle, Time put = k_put) {
    for (std::int64_t number = 0; number < offered; ++number)
      seen.board[group(1).hash()].push_back({number, put, number < matched ? at : Time{}});
  }
  GroupDemand add(Offering offering = Offering::decides) {
    add_offers(demand, seen, offering);
    return demand.groups.at(group(1));
  }
};

std::int64_t wanted(const Demand& demand) {
  return decide(demand, {}, {}, {}, k_cycle, {}).submissions();
}

}  // namespace

TEST_CASE("offers: so many jobs count as pods would be used, each owner's in proportion") {
  Scene scene;
  scene.ads(20, 10);
  const auto jobs = scene.add();
  CHECK(jobs.idle == 10);
  CHECK(jobs.unmaterialized == 0);
  CHECK(jobs.owners == std::map<std::string, std::int64_t>{{"alice", 7}, {"bob", 3}});
  CHECK(jobs.offers->queried == 40);
  CHECK(jobs.offers->offered == 20);
  CHECK(jobs.offers->matched == 10);
  CHECK(wanted(scene.demand) == pressure(10, 20));
}

TEST_CASE("offers: where they are told only the query counts") {
  Scene scene;
  scene.ads(20, 10);
  const auto jobs = scene.add(Offering::told);
  CHECK(jobs.idle == 40);
  CHECK(jobs.offers->matched == 10);
  CHECK(wanted(scene.demand) == pressure(47, 20));
}

TEST_CASE("offers: what the negotiator gave to no running pod is left to none") {
  for (const auto offering : {Offering::told, Offering::decides}) {
    Scene scene;
    scene.ads(20, 10);
    scene.add(offering);
    Supply supply;
    supply.groups[group(1)].claimed = 1;
    supply.rooms.push_back({group(1), of_slot(4, 1 << 16, 100'000'000, 0, 8), true});
    const auto decision = decide(scene.demand, supply, {}, {}, k_cycle, {}).decisions.at(0);
    CHECK(decision.fit == (offering == Offering::told ? 4 : 0));
  }
}

TEST_CASE("offers: a plan shows both numbers, whichever decides") {
  for (const auto offering : {Offering::told, Offering::decides}) {
    Scene scene;
    scene.ads(20, 10);
    scene.add(offering);
    Observation seen;
    seen.at = k_cycle;
    seen.demand = scene.demand;
    const auto status = report(seen, decide(scene.demand, {}, {}, {}, k_cycle, {}), nullptr);
    CHECK(table(status).value().find(
              "40 idle jobs by the query; of 20 pods offered the negotiator would use 10") !=
          std::string::npos);
    CHECK(status["decisions"][0]["offers"]["decides"] == (offering == Offering::decides));
  }
}

TEST_CASE("offers: jobs that have begun since the cycle need no pods any more") {
  struct Row {
    std::int64_t begun, idle;
  };
  for (const Row& row : {Row{0, 10}, Row{4, 6}, Row{10, 0}, Row{12, 0}}) {
    Scene scene;
    scene.ads(20, 10);
    scene.add();
    begun_since(scene.demand, group(1), row.begun);
    CHECK(scene.demand.groups.at(group(1)).idle == row.idle);
    const auto reason = decide(scene.demand, {}, {}, {}, k_cycle, {}).decisions.at(0).reason();
    CHECK((reason.find(fmt::format(", before {} more jobs began: 40 -> {}", row.begun, row.idle)) !=
           std::string::npos) == (row.begun > 0));
  }
  // Where the query's own count holds it has left them out already.
  for (const auto offering : {Offering::told, Offering::decides}) {
    Scene scene;
    scene.ads(20, offering == Offering::told ? 10 : 20);
    scene.add(offering);
    begun_since(scene.demand, group(1), 4);
    CHECK(scene.demand.groups.at(group(1)).idle == 40);
  }
}

TEST_CASE("offers: where all were matched nothing limits the query") {
  Scene scene;
  scene.ads(20, 20);
  CHECK(scene.add().idle == 40);
}

TEST_CASE("offers: none matched is none wanted, and it is told why") {
  Scene scene;
  scene.ads(20, 0);
  CHECK(scene.add().idle == 0);
  const auto plan = decide(scene.demand, {}, {}, {}, k_cycle, {});
  REQUIRE(plan.decisions.size() == 1);
  CHECK(plan.decisions[0].verdict == Decision::Verdict::no_demand);
  CHECK(plan.decisions[0].reason() == "negotiator: would use 0 of 20 pods offered: 40 -> 0; no idle jobs");
}

TEST_CASE("offers: a match of a cycle before the last one does not count") {
  Scene scene;
  scene.ads(20, 10, k_cycle - Seconds(1));
  CHECK(scene.add().offers->matched == 0);
}

TEST_CASE("offers: an ad that no cycle can have seen says nothing, and nothing is decided") {
  Scene scene;
  scene.ads(20, 0, {}, k_cycle - Seconds(19));
  GroupSupply pods;
  pods.waiting = 3;
  const auto check = [&] {
    const auto jobs = scene.add();
    CHECK(jobs.offers->state == State::asked);
    CHECK(jobs.idle == 40);
    Supply supply;
    supply.groups[group(1)] = pods;
    const auto decision = decide(scene.demand, supply, {}, {}, k_cycle, {}).decisions.at(0);
    CHECK(decision.submit == 0);
    CHECK(decision.keep == 3);
    CHECK(decision.verdict == Decision::Verdict::limited);
  };
  check();
  scene.seen.cycle.reset();
  check();
  // Of some that are older than others, the older ones do.
  scene.seen.cycle = k_cycle;
  for (std::int64_t number = 20; number < 24; ++number)
    scene.seen.board[group(1).hash()].push_back({number, k_put, number < 22 ? k_cycle : Time{}});
  const auto offers = *scene.add().offers;
  CHECK(offers.state == State::answered);
  CHECK(offers.offered == 4);
  CHECK(offers.matched == 2);
}

TEST_CASE("offers: where no job is idle there is nothing to ask") {
  Scene scene;
  scene.demand.groups[group(1)] = {};
  scene.add();
  Supply supply;
  supply.groups[group(1)].claimed = 1;
  CHECK(decide(scene.demand, supply, {}, {}, k_cycle, {}).decisions.at(0).verdict ==
        Decision::Verdict::no_demand);
}

TEST_CASE("offers: ads just put there count for nothing yet, whatever pods there are") {
  Scene scene;
  CHECK(scene.add().offers->state == State::asked);
}

TEST_CASE("offers: without a pilot to copy one pod is made, to learn of it") {
  Scene scene;
  scene.seen.pilots[0] = false;
  scene.seen.pilots[1] = true;
  CHECK(scene.add().offers->state == State::no_pilot);
  CHECK(wanted(scene.demand) == 1);
  // Pods that wait already are not too many for that.
  Supply supply;
  supply.groups[group(1)].waiting = 5;
  CHECK(decide(scene.demand, supply, {}, {}, k_cycle, {}).decisions.at(0).keep == 5);
  // A pilot with GPUs is copied for jobs with GPUs.
  auto gpus = group(1);
  gpus.gpus = 1;
  CHECK(judge(gpus, 40, scene.seen).state == State::asked);
}

TEST_CASE("offers: so many ads as jobs wait, at most so many, and each again in time") {
  Scene scene;
  const std::map<Group, GroupDemand> queried = {
      {group(1), {.idle = 40}}, {group(2), {.idle = 3}}, {group(4), {}}};
  const auto missing = [&](Time now) {
    return missing_offers(queried, scene.seen, 20, Seconds(1200), now, 100);
  };
  CHECK(missing(k_put).size() == 23);
  scene.ads(20, 0);
  CHECK(missing(k_put + Seconds(599)).size() == 3);
  CHECK(missing(k_put + Seconds(599))[2] == std::pair(group(2), std::int64_t{2}));
  CHECK(missing(k_put + Seconds(600)).size() == 23);
  // Another number than that of an ad that is there.
  scene.seen.board[group(1).hash()].pop_back();
  CHECK(missing(k_put).size() == 4);
  CHECK(missing(k_put)[3] == std::pair(group(1), std::int64_t{19}));
}

TEST_CASE("offers: of too many ads each owner gets as many, and each group its first") {
  Scene scene;
  std::map<Group, GroupDemand> queried;
  for (int cpus = 1; cpus <= 50; ++cpus) queried[group(cpus)] = {.idle = 40, .owners = {{"mallory", 40}}};
  // Another one's jobs do not make a group mallory's.
  queried[group(60)] = {.idle = 40, .owners = {{"alice", 39}, {"mallory", 1}}};
  queried[group(61)] = {.idle = 1, .owners = {{"bob", 1}}};
  const auto missing = missing_offers(queried, scene.seen, 20, Seconds(1200), k_put, 41);
  std::map<Group, int> got;
  for (const auto& [key, number] : missing) ++got[key];
  CHECK(missing.size() == 41);
  CHECK(got[group(60)] == 20);
  CHECK(got[group(61)] == 1);
  CHECK(got.size() == 22);  // and twenty of mallory's, one of a group
  CHECK(missing_offers(queried, scene.seen, 20, Seconds(1200), k_put, 5000).size() == 51 * 20 + 1);
}
