#include <doctest/doctest.h>

#include <algorithm>

#include "provisioner/decide/places.hpp"
#include "tests/provisioner/decide/inputs.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

// Two to four places with limits, pods and quotas of any kind.
struct Case : RandomInputs {
  explicit Case(std::uint64_t seed, bool limited = true) : RandomInputs(seed) {
    std::vector<PlacePolicy> places;
    const auto count = 2 + below(3);
    for (std::int64_t i = 0; i < count; ++i) {
      auto& p = places.emplace_back();
      p.name = "p" + std::to_string(i);
      p.image = p.name + "/img";
      p.weight = below(4);
      p.max_pods_per_cluster = limited ? below(60) : 100'000;
      p.max_submit_pods_per_cluster = limited ? 1 + below(200) : 1'000'000;
      p.max_pods = limited && below(2) == 0 ? 1 + below(200) : 0;
      auto& room = capacity.places[p.name];
      if (limited && below(3) == 0)
        room.quota_left =
            Resources{.cpu_milli = below(100'000), .memory_bytes = below(10'000), .pods = below(60)};
      auto& place = supply.places[p.name];
      if (limited && below(4) == 0) {
        place.unseen = "no answer";
        place.unseen_for = Seconds(below(1000));
        place.unknown = below(3) == 0;
      }
    }
    set_places(policy, places);
    auto& s = policy.settings;
    if (limited)
      for (auto* rule : {&s.ramp_up_per_group, &s.ramp_up, &s.max_idle, &s.max_running, &s.max_pods})
        *rule = below(4) == 0 ? below(500) : 0;
    for (std::int64_t i = 1 + below(6); i > 0; --i) {
      Group group;
      group.cpus = i;
      if (below(5) > 0) {
        const auto idle = below(2000);
        demand.groups[group] = {.idle = idle, .owners = {{"user" + std::to_string(below(3)), idle}}};
      }
      for (auto& [name, place] : supply.places) {
        capacity.places[name].needs[group] = {.cpu_milli = i * 1000, .memory_bytes = 1 + below(500)};
        if (below(3) == 0) continue;
        auto& pods = place.groups[group];
        for (auto* number : {&pods.waiting, &pods.unmatched, &pods.claimed, &pods.broken, &pods.unknown})
          *number = below(30);
        if (limited)
          for (auto n = below(5); n > 0; --n) pods.failures.push_back(k_now - Seconds(below(3000)));
        add(supply.groups[group], pods);
      }
    }
    history.cycle = random() % 100;
  }
};

}  // namespace

TEST_CASE("properties: of any decision over 5,000 random states of several places") {
  std::int64_t submitting = 0, overflowing = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) {
    const Case c(seed);
    const auto plan = c.decided();
    bool good = true, unknown = false;
    for (const auto& [name, place] : c.supply.places) unknown = unknown || place.unknown;
    std::map<std::string, std::int64_t> made;
    std::map<std::string, Resources> quota;
    for (const auto& [name, room] : c.capacity.places)
      if (room.quota_left) quota[name] = *room.quota_left;
    for (const auto& d : plan.decisions) {
      // The law is that of all together, with what the places have at last sight.
      const auto law = pressure(d.counted, c.policy.max_pods_per_cluster);
      good = good && d.submit <= std::max<std::int64_t>(law - d.supply.unclaimed(), 0);
      std::int64_t sum = 0;
      for (const auto& in : d.places) {
        const auto& place = c.supply.places.at(in.place);
        const auto& rules = *std::ranges::find(c.policy.places, in.place, &PlacePolicy::name);
        const auto found = place.groups.find(d.group);
        const auto pods = found == place.groups.end() ? GroupSupply{} : found->second;
        sum += in.submit;
        made[in.place] += in.submit;
        good = good && in.submit >= 0;
        if (in.submit == 0) continue;
        // Never above what is the place's own.
        good = good && place.unseen.empty() && pods.unclaimed() + in.submit <= rules.max_pods_per_cluster &&
               pods.live() + in.submit <= rules.max_submit_pods_per_cluster;
        if (quota.contains(in.place))
          quota[in.place] =
              quota[in.place].minus(c.capacity.places.at(in.place).needs.at(d.group), in.submit);
        overflowing += rules.weight == 0;
      }
      good = good && sum == d.submit;
      const bool makes = d.verdict == Decision::Verdict::submit || d.verdict == Decision::Verdict::canary;
      good = good && makes == (d.submit > 0);
    }
    for (const auto& rules : c.policy.places) {
      std::int64_t live = 0;
      for (const auto& [group, pods] : c.supply.places.at(rules.name).groups) live += pods.live();
      good =
          good && (rules.max_pods == 0 || made[rules.name] == 0 || live + made[rules.name] <= rules.max_pods);
      lost += !c.supply.places.at(rules.name).unseen.empty();
    }
    for (const auto& [name, left] : quota)
      good = good && left.cpu_milli >= 0 && left.memory_bytes >= 0 && left.pods >= 0;
    // One whose pods nobody knows: none are made that might be too many.
    good = good && (!unknown || plan.submissions() == 0);
    good = good && plan.removals.empty() && c.decided().submissions() == plan.submissions();
    submitting += plan.submissions() > 0;
    CAPTURE(seed);
    if (!good) FAIL("a property does not hold");
  }
  CHECK(submitting > 1000);
  CHECK(overflowing > 500);
  CHECK(lost > 1000);
}

TEST_CASE("properties: where places have room they get together what one would") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Case c(seed, false);
    auto one = c.policy;
    one.places.clear();
    const auto plan = c.decided();
    const auto alone = decide(c.demand, c.supply, {}, one, k_now, c.history);
    bool good = plan.decisions.size() == alone.decisions.size();
    for (std::size_t i = 0; good && i < plan.decisions.size(); ++i)
      good = plan.decisions[i].submit == alone.decisions[i].submit &&
             plan.decisions[i].verdict == alone.decisions[i].verdict;
    CAPTURE(seed);
    CHECK(good);
  }
}

TEST_CASE(
    "properties: that one place is lost takes nothing from the others, and gives them no more than their "
    "own") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Case c(seed);
    for (auto& [name, place] : c.supply.places) {
      place.unseen.clear();
      place.unknown = false;
    }
    const auto before = c.decided();
    auto& lost = c.supply.places.begin()->second;
    lost.unseen = "no answer";
    const auto after = c.decided();
    bool good = after.removals.empty() && after.decisions.size() == before.decisions.size();
    for (std::size_t i = 0; good && i < after.decisions.size(); ++i)
      good = after.decisions[i].submit <= before.decisions[i].target &&
             after.decisions[i].target == before.decisions[i].target;
    CAPTURE(seed);
    CHECK(good);
  }
}
