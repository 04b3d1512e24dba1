#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/provisioner/decide/inputs.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

struct Case : RandomInputs {
  // Often zero, mostly small, sometimes large.
  std::int64_t number(std::int64_t most) {
    switch (below(4)) {
      case 0:
        return 0;
      case 1:
        return below(5);
      case 2:
        return below(60);
      default:
        return below(most);
    }
  }

  explicit Case(std::uint64_t seed) : RandomInputs(seed) {
    policy.max_pods_per_cluster = 1 + number(200);
    policy.max_submit_pods_per_cluster = 1 + below(2000);
    auto& s = policy.settings;
    for (auto* rule :
         {&s.ramp_up_per_group, &s.ramp_up, &s.max_idle_per_group, &s.max_idle, &s.max_running_per_group,
          &s.max_running, &s.max_pods_per_group, &s.max_pods, &s.max_pods_per_owner, &s.breaker_failures})
      *rule = below(4) == 0 ? number(500) : 0;
    const auto groups = 1 + below(12);
    for (std::int64_t i = 0; i < groups; ++i) {
      Group group;
      group.cpus = 1 + below(14);
      if (below(5) > 0) {
        auto& jobs = demand.groups[group];
        for (std::int64_t owner = below(4); owner >= 0; --owner) {
          const auto idle = number(3000);
          jobs.idle += idle;
          jobs.owners["user" + std::to_string(owner)] += idle;
        }
        jobs.unmaterialized = number(100);
      }
      if (below(3) > 0) {
        auto& pods = supply.groups[group];
        for (auto* count : {&pods.waiting, &pods.unmatched, &pods.claimed, &pods.broken, &pods.unknown,
                            &pods.wasted, &pods.used})
          *count = number(300);
        for (auto* times : {&pods.failures, &pods.registrations})
          for (auto n = below(6); n > 0; --n) times->push_back(k_now - Seconds(below(3000)));
        for (auto n = below(4); n > 0; --n)
          pods.crashes.emplace_back(k_now - Seconds(below(9000)), "p" + std::to_string(n), "bad");
      }
      for (auto n = below(6); n > 0; --n)
        supply.rooms.push_back(
            {group, of_slot(below(20), below(40'000), below(20'000'000), 0, below(9)), below(2) == 0});
      if (below(3) == 0 && demand.groups.contains(group))
        demand.groups[group].largest = of_job(1 + below(group.cpus), below(9000), below(9'000'000), 0);
      capacity.needs[group] = {.cpu_milli = group.cpus * 1000, .memory_bytes = 1 + below(1000)};
      if (below(3) == 0)
        history.breakers[{group, "img"}] = {.open = below(2) == 0,
                                            .opened = k_now - Seconds(below(9999)),
                                            .closed = k_now - Seconds(below(9999)),
                                            .next_canary = k_now + Seconds(below(200) - 100),
                                            .pause = Seconds(below(7200))};
    }
    if (below(3) > 0) history.nodes["bad"] = {.until = k_now + Seconds(below(900))};
    if (below(3) == 0) capacity.nodes = {{.cpu_milli = 8000, .memory_bytes = 500, .pods = 10}};
    if (below(3) == 0) capacity.quota = Resources{.cpu_milli = 40'000, .memory_bytes = 10'000, .pods = 40};
    if (capacity.quota)
      capacity.quota_left =
          Resources{.cpu_milli = below(40'000), .memory_bytes = below(10'000), .pods = below(40)};
    for (auto n = below(150); n > 0; --n)
      supply.ended.push_back(
          {"ended" + std::to_string(n), below(2) == 0, k_now - Seconds(below(200'000)), below(20)});
    for (int owner = 0; owner < 4; ++owner)
      supply.claimed_by_owner["user" + std::to_string(owner)] = number(100);
    if (below(10) == 0) demand.blind = "no collector";
    if (below(10) == 0) supply.blind = "no API server";
    history.cycle = random() % 100;
  }
};

// "": none, the cap is off.
bool over(std::int64_t cap, std::int64_t have, std::int64_t added) {
  return cap > 0 && added > 0 && have + added > cap;
}

}  // namespace

TEST_CASE("properties: of any decision over 5,000 random states") {
  std::int64_t submitting = 0, blind = 0, fitting = 0;
  for (std::uint64_t seed = 1; seed <= 5'000; ++seed) {
    const Case c(seed);
    const auto plan = c.decided();
    const auto& s = c.policy.settings;
    bool good = true;
    if (c.demand.blind || c.supply.blind) {
      ++blind;
      good = plan.blind && plan.decisions.empty() && plan.removals.empty();
    }
    std::int64_t unclaimed = 0, running = 0, live = 0, sum = plan.submissions();
    for (const auto& [group, pods] : c.supply.groups) {
      unclaimed += pods.unclaimed();
      running += pods.unclaimed() + pods.claimed;
      live += pods.live();
    }
    Resources taken{.pods = 0}, fitted{.pods = 0}, had{.pods = 0};
    for (const auto& room : c.supply.rooms) had = had.minus(room.left, -1);
    for (const auto& d : plan.decisions) {
      const auto& pods = d.supply;
      // Never above a curb or a cap of the group, nor above PRP's law.
      good = good && d.submit >= 0 && !d.steps.empty();
      good =
          good && d.submit <= std::max<std::int64_t>(
                                  pressure(d.counted, c.policy.max_pods_per_cluster) - pods.unclaimed(), 0);
      good = good && (d.submit == 0 || pods.live() < c.policy.max_submit_pods_per_cluster);
      good = good && !over(s.ramp_up_per_group, 0, d.submit) &&
             !over(s.max_idle_per_group, pods.unclaimed(), d.submit);
      good = good && !over(s.max_running_per_group, pods.unclaimed() + pods.claimed, d.submit);
      good = good && !over(s.max_pods_per_group, pods.live(), d.submit);
      // What fits into running pods is theirs and fits there, and asks for no pod.
      good = good && d.fit >= 0 && d.fit <= d.counted;
      good =
          good &&
          d.submit <= std::max<std::int64_t>(
                          pressure(d.counted - d.fit, c.policy.max_pods_per_cluster) - pods.unclaimed(), 0);
      const auto asked =
          d.demand.largest.value_or(of_job(d.group.cpus, d.group.memory_mb, d.group.disk_kb, d.group.gpus));
      fitted = fitted.minus(asked, -d.fit);
      fitting += d.fit > 0;
      // Pods are made exactly where the verdict says so, never without jobs.
      const bool makes = d.verdict == Decision::Verdict::submit || d.verdict == Decision::Verdict::canary;
      good = good && makes == (d.submit > 0) && (!makes || d.demand.idle + d.demand.unmaterialized > 0);
      good = good && (d.verdict != Decision::Verdict::canary || d.submit == 1);
      for (std::int64_t i = 0; i < d.submit; ++i) taken = taken.minus(c.capacity.needs.at(d.group));
    }
    good = good && had.minus(fitted).cpu_milli >= 0 && had.minus(fitted).memory_bytes >= 0 &&
           had.minus(fitted).disk_bytes >= 0 && had.minus(fitted).pods >= 0;
    // Nor above one of all groups.
    good = good && !over(s.ramp_up, 0, sum) && !over(s.max_idle, unclaimed, sum) &&
           !over(s.max_running, running, sum);
    good = good && !over(s.max_pods, live, sum);
    if (c.capacity.quota_left)
      good = good && c.capacity.quota_left->cpu_milli + taken.cpu_milli >= 0 &&
             c.capacity.quota_left->memory_bytes + taken.memory_bytes >= 0 &&
             c.capacity.quota_left->pods + taken.pods >= 0;
    // Only what has ended is ever removed, and once.
    std::set<std::string> ended;
    for (const auto& pod : c.supply.ended) ended.insert(pod.name);
    for (const auto& removal : plan.removals) good = good && ended.erase(removal.pod) == 1;
    good = good && static_cast<std::int64_t>(plan.removals.size()) <= c.policy.removals_per_cycle;
    // The same again.
    const auto again = c.decided();
    good = good && again.submissions() == sum && again.decisions.size() == plan.decisions.size();
    submitting += sum > 0;
    CAPTURE(seed);
    if (!good) FAIL("a property does not hold");
  }
  CHECK(submitting > 1000);
  CHECK(blind > 500);
  CHECK(fitting > 1000);
}

TEST_CASE("properties: one owner alone never gets more pods than the cap") {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Case c(seed);
    c.demand.blind = c.supply.blind = std::nullopt;
    c.policy.settings.max_pods_per_owner = 1 + c.below(50);
    c.supply.claimed_by_owner.clear();
    std::int64_t claimed = 0;
    for (auto& [group, jobs] : c.demand.groups) {
      jobs.owners = {{"user", jobs.idle}};
      jobs.unmaterialized = 0;
    }
    for (const auto& [group, pods] : c.supply.groups) claimed += pods.claimed;
    c.supply.claimed_by_owner["user"] = claimed;
    const auto plan = c.decided();
    // What was there before may be above a cap that came later; it is never made worse.
    const auto cap = c.policy.settings.max_pods_per_owner;
    std::int64_t given = 0;
    for (const auto& d : plan.decisions)
      if (d.submit > 0) given += d.supply.unclaimed() + d.submit;
    CAPTURE(seed);
    CHECK(given <= std::max<std::int64_t>(cap - claimed, 0));
  }
}
