#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/file.hpp"
#include "provisioner/simulate/judge.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

Scenario large_day() {
  const auto text = read_file(GLIDEPOD_SCENARIOS "/large.conf");
  REQUIRE(text.ok());
  Ini ini;
  REQUIRE(ini.read(text.value(), "large.conf").ok());
  auto parsed = parse_scenario(ini);
  if (!parsed) FAIL(parsed.error().message());
  return std::move(parsed).value();
}

}  // namespace

// The limits are those that docs/simulator.md names.
TEST_CASE("simulate: a day of 100 groups, 20 owners, 10,000 pods and nodes that fail") {
  const auto day = large_day();
  Judge judge(day);
  std::int64_t most_live = 0, most_new = 0, without_demand = 0;
  std::set<std::string> owners, avoided;
  std::set<Group> groups;
  const auto samples = simulate(day, [&](const Demand& demand, const Supply& supply, const Plan& plan) {
    judge(demand, supply, plan);
    std::int64_t sum = plan.submissions();
    most_new = std::max(most_new, sum);
    for (const auto& [group, pods] : supply.groups) sum += pods.live();
    most_live = std::max(most_live, sum);
    for (const auto& d : plan.decisions)
      if (!demand.groups.contains(d.group)) without_demand += d.submit;
    for (const auto& [group, jobs] : demand.groups) {
      groups.insert(group);
      for (const auto& [owner, idle] : jobs.owners) owners.insert(owner);
    }
    avoided.insert(plan.avoid.begin(), plan.avoid.end());
  });
  const auto got = judge.judgement(samples);
  MESSAGE(to_text(got), avoided.size(), " nodes were avoided");
  CHECK(groups.size() == 100);
  CHECK(owners.size() == 20);
  CHECK(!avoided.empty());
  CHECK(most_live > 9'000);
  CHECK(most_live <= 10'000);
  CHECK(most_new <= 500);
  CHECK(without_demand == 0);
  CHECK(got.waste < 0.15);
  CHECK(got.fairness > 0.95);
  CHECK(got.swings <= 5);
  CHECK(got.ended_unused + got.taken_back < got.submitted / 20);
}
