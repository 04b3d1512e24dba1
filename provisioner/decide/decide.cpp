#include "provisioner/decide/decide.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "lib/base/found.hpp"
#include "provisioner/decide/breaker.hpp"
#include "provisioner/decide/nodes.hpp"
#include "provisioner/decide/places.hpp"
#include "provisioner/decide/removal.hpp"
#include "provisioner/decide/room.hpp"
#include "provisioner/decide/share.hpp"

namespace glidepod::provisioner {

namespace {

using Verdict = Decision::Verdict;

struct Counted {
  std::map<Group, std::int64_t> jobs;
  std::map<Group, std::string> quota;  // the accounting group whose quota had a say
};

// The idle jobs of each group that count, with each owner's taken only up to what the cap leaves, and up to
// what the owner's accounting group has left of its quota in the pool.
Counted counted_jobs(const Demand& demand, const Supply& supply, std::int64_t cap) {
  Counted result;
  std::map<std::string, std::int64_t> left;
  auto quotas = demand.priorities.quota_left;
  const auto within_quota = [&](const Group& group, const std::string& owner, std::int64_t jobs) {
    const auto accounted = demand.priorities.group_of.find(owner);
    if (accounted == demand.priorities.group_of.end()) return jobs;
    auto& cores = quotas[accounted->second];
    const auto weight = static_cast<double>(group.cpus);
    // The minimum is taken as a double: a quota may be larger than any whole number here.
    const auto taken = static_cast<std::int64_t>(std::min(static_cast<double>(jobs), cores / weight));
    cores -= static_cast<double>(taken) * weight;
    if (taken < jobs) result.quota[group] = accounted->second;
    return taken;
  };
  for (const auto& [group, wanted] : demand.groups) {
    auto& counted = result.jobs[group];
    if (cap == 0) {
      for (const auto& [owner, idle] : wanted.owners) counted -= idle - within_quota(group, owner, idle);
      counted += wanted.idle + (counted < 0 ? 0 : wanted.unmaterialized);
    } else {
      for (const auto& [owner, idle] : wanted.owners) {
        const auto* claimed = found_in(supply.claimed_by_owner, owner);
        const auto used = claimed ? *claimed : 0;
        auto& budget = left.try_emplace(owner, std::max<std::int64_t>(cap - used, 0)).first->second;
        const auto taken = std::min(idle, budget);
        const auto counts = within_quota(group, owner, taken);
        budget -= counts;
        counted += counts;
      }
    }
  }
  return result;
}

// PRP's law, and what makes its number smaller. steps gets each rule that had a say.
std::int64_t target_of(std::int64_t jobs, const GroupSupply& supply, const Policy& policy, bool no_node,
                       Time now, std::vector<Step>* steps) {
  const auto say = [steps](Step step) {
    if (steps) steps->push_back(std::move(step));
  };
  auto target = jobs == 0 ? 0 : pressure(jobs, policy.max_pods_per_cluster);
  say({Rule::law, {jobs, target}});
  if (policy.settings.waste_feedback) {
    const auto good = supply.used + supply.claimed + 1;
    // Rounded to the nearest: one wasted pilot among many takes nothing from a small target.
    const auto all = good + supply.wasted;
    const auto lowered = std::max<std::int64_t>((2 * target * good + all) / (2 * all), 1);
    if (lowered < target) {
      say({Rule::waste, {supply.wasted, supply.used + supply.claimed, target, lowered}});
      target = lowered;
    }
  }
  // One pod shows when there is room again; more would only take what others may wait for.
  if (no_node && target > 1) {
    say({Rule::no_node, {(now - supply.unschedulable_since).count(), target, 1}});
    target = 1;
  }
  return target;
}

// What the negotiator's word on the group's pods changes. True: it has not spoken yet, and so nothing is
// decided.
bool asks_pool(Decision& decision, const Offers& offers) {
  if (!offers.decides || offers.queried == 0) return false;
  const auto idle = decision.demand.idle;
  if (offers.state == Offers::State::asked) {
    decision.steps.push_back({Rule::negotiation});
    decision.verdict = Verdict::limited;
    decision.keep = decision.target = std::max<std::int64_t>(decision.supply.unclaimed(), 1);
    return true;
  }
  if (offers.state == Offers::State::no_pilot && idle < offers.queried) {
    decision.steps.push_back({Rule::first_pilot, {offers.queried, idle}});
    decision.keep = decision.supply.unclaimed();
  }
  if (offers.limits())
    decision.steps.push_back(
        {Rule::negotiator, {offers.matched, offers.offered, offers.queried, idle}, offers.since()});
  return false;
}

std::vector<Step> unservable(const Group& group, const Capacity& capacity, const Placing* placing) {
  if (placing) return placing->why_unservable(group);
  const auto why = why_unservable(group, capacity);
  return why ? std::vector{*why} : std::vector<Step>();
}

// The law for this group and everything else that concerns it alone. With named places the breaker is theirs.
void decide_group(Decision& decision, const Counted& counted, const View& view, History& history,
                  Placing* placing) {
  const auto& policy = view.policy;
  const auto now = view.now;
  const auto& s = policy.settings;
  const auto& supply = decision.supply;
  const auto idle = decision.demand.idle + decision.demand.unmaterialized;
  if (decision.demand.offers && asks_pool(decision, *decision.demand.offers)) return;
  if (idle == 0) {
    decision.verdict = Verdict::no_demand;
    decision.steps.push_back({Rule::no_jobs});
    return;
  }
  const auto& group = decision.group;
  if (const auto* entry = drained_group(policy.drained, group)) {
    decision.verdict = Verdict::limited;
    decision.steps.push_back(step_of(*entry, now));
    return;
  }
  if (auto why = unservable(group, view.capacity, placing); !why.empty()) {
    decision.verdict = Verdict::unservable;
    std::ranges::move(why, std::back_inserter(decision.steps));
    return;
  }
  if (decision.counted < idle) {
    const auto quota = counted.quota.find(group);
    decision.steps.push_back(
        quota == counted.quota.end()
            ? Step{Rule::max_pods_per_owner, {s.max_pods_per_owner, decision.counted, idle}}
            : Step{Rule::group_quota, {0, decision.counted, idle}, quota->second});
  }
  const bool no_node = placing ? placing->homeless(group) : homeless(supply, s, now);
  decision.keep = std::max(decision.keep, target_of(decision.counted, supply, policy, no_node, now, nullptr));
  decision.target = target_of(decision.counted - decision.fit, supply, policy, no_node, now, &decision.steps);
  // Without the breaker, pods that fail wait like any other, as with PRP: nothing else would end the storm.
  auto waiting = supply.unclaimed() + (s.breaker_failures == 0 ? supply.broken : 0);
  if (placing) {
    decision.without_room = placing->without_room(group);
    decision.stuck = placing->stuck(group);
    waiting -= decision.stuck;
    if (decision.stuck > 0)
      decision.steps.push_back(
          {Rule::without_node, {decision.stuck}, fmt::format("{}", fmt::join(decision.without_room, ", "))});
  }
  decision.submit = std::max<std::int64_t>(decision.target - waiting, 0);
  if (supply.live() >= policy.max_submit_pods_per_cluster) {
    decision.steps.push_back(
        {Rule::max_submit_pods_per_cluster, {policy.max_submit_pods_per_cluster, supply.live()}});
    decision.submit = 0;
  }
  if (waiting > 0) decision.steps.push_back({Rule::waiting, {waiting}});
  decision.verdict = decision.submit > 0 ? Verdict::submit : Verdict::enough;

  const auto says =
      placing ? BreakerSays{} : consult(history.breakers[{group, policy.image}], supply, s, now);
  if (says.allowed >= 0) {
    decision.steps.push_back(says.why);
    if (decision.submit > 0) decision.verdict = says.allowed > 0 ? Verdict::canary : Verdict::stopped;
    decision.submit = std::min(decision.submit, says.allowed);
  }
  if (const auto api = placing ? BreakerSays{} : refused(history, group, {}, now); api.allowed >= 0) {
    decision.steps.push_back(api.why);
    if (decision.submit > 0 && api.allowed == 0) decision.verdict = Verdict::stopped;
    decision.submit = std::min(decision.submit, api.allowed);
  }
  if (s.ramp_up_per_group > 0) lower(decision, s.ramp_up_per_group, Rule::ramp_up_per_group);
  if (s.max_idle_per_group > 0)
    lower(decision, s.max_idle_per_group - supply.unclaimed(), Rule::max_idle_per_group);
  const auto running = supply.unclaimed() + supply.claimed;
  if (s.max_running_per_group > 0)
    lower(decision, s.max_running_per_group - running, Rule::max_running_per_group);
  if (s.max_pods_per_group > 0)
    lower(decision, s.max_pods_per_group - supply.live(), Rule::max_pods_per_group);
}

}  // namespace

void lower(Decision& decision, std::int64_t limit, Rule rule) {
  const auto allowed = std::max<std::int64_t>(limit, 0);
  if (decision.submit <= allowed) return;
  decision.steps.push_back({rule, {decision.submit, allowed}});
  decision.submit = allowed;
}

std::optional<Step> why_unservable(const Group& group, const Capacity& capacity) {
  if (const auto told = capacity.unservable.find(group); told != capacity.unservable.end())
    return Step{Rule::not_made, {}, told->second};
  const auto* need = found_in(capacity.needs, group);
  if (!need) return std::nullopt;
  const auto fits = [need](const Resources& room) { return room.holds(*need, 1) > 0; };
  if (!capacity.nodes.empty() && std::none_of(capacity.nodes.begin(), capacity.nodes.end(), fits))
    return Step{Rule::node_size};
  if (capacity.quota && !fits(*capacity.quota)) return Step{Rule::quota_size};
  return std::nullopt;
}

std::int64_t pressure(std::int64_t idle, std::int64_t max_pods_per_cluster) {
  const auto pods = 1 + idle / 4;
  return std::min(std::min(pods, 20 + (pods - 20) / 4), max_pods_per_cluster);
}

std::string_view to_string(Decision::Verdict verdict) {
  switch (verdict) {
    case Verdict::submit:
      return "submit";
    case Verdict::enough:
      return "enough";
    case Verdict::limited:
      return "limited";
    case Verdict::stopped:
      return "stopped";
    case Verdict::canary:
      return "canary";
    case Verdict::unservable:
      return "unservable";
    case Verdict::no_demand:
      return "no demand";
  }
  return "?";
}

std::string Decision::reason() const {
  std::string result;
  for (const auto& step : steps) result += (result.empty() ? "" : "; ") + text(step);
  return result;
}

bool Plan::breaker_open(const Decision& decision) const {
  const auto* breaker = found_in(history.breakers, std::pair(decision.group, decision.image));
  return std::ranges::any_of(decision.places, &Decision::InPlace::stopped) || (breaker && breaker->open);
}

std::int64_t Plan::submissions() const {
  std::int64_t sum = 0;
  for (const auto& decision : decisions) sum += decision.submit;
  return sum;
}

Plan decide(const Demand& demand, const Supply& supply, const Capacity& capacity, const Policy& policy,
            Time now, History history) {
  const View view{demand, supply, capacity, policy, now};
  Plan plan;
  plan.history = std::move(history);
  plan.blind = supply.blind ? supply.blind : demand.blind;
  if (plan.blind) return plan;
  plan.equal_shares = demand.priorities.unknown;

  std::map<Group, Decision> decisions;
  judge_nodes(plan.history.nodes, supply, policy.settings, now);
  plan.avoid = avoided(plan.history.nodes, now);
  plan.drained = policy.drained;
  const auto off = drained_nodes(policy.drained);
  for (const auto& [group, pods] : supply.groups) {
    const auto* breaker = found_in(plan.history.breakers, std::pair(group, policy.image));
    decisions[group].supply = without_nodes(pods, plan.history.nodes, breaker ? breaker->closed : Time{},
                                            now - policy.settings.waste_window);
  }
  for (const auto& [group, jobs] : demand.groups) decisions[group].demand = jobs;
  const auto counted = counted_jobs(demand, supply, policy.settings.max_pods_per_owner);
  auto left = leave_to_pods(counted.jobs, demand, supply, policy, now, plan.history.left_since);
  // The negotiator has seen what running pods have left, and gave these jobs to pods that are not there.
  std::erase_if(left, [&demand](const auto& entry) {
    const auto& offers = demand.groups.at(entry.first).offers;
    return offers && offers->decides && offers->state == Offers::State::answered;
  });
  for (const auto& [name, place] : supply.places)
    if (!place.unseen.empty()) plan.unseen[name] = place.unseen;
  std::optional<Placing> placing;
  if (!policy.places.empty()) placing.emplace(supply, capacity, policy, plan.history, now);
  auto* const places = placing ? &*placing : nullptr;
  for (auto& [group, decision] : decisions) {
    const bool queried = decision.demand.offers && decision.demand.offers->queried > 0;
    if (decision.supply.live() == 0 && decision.demand.idle + decision.demand.unmaterialized == 0 && !queried)
      continue;
    decision.group = group;
    decision.image = policy.image;
    if (const auto* jobs = found_in(counted.jobs, group)) decision.counted = *jobs;
    if (const auto* jobs = found_in(left, group)) {
      decision.fit = jobs->jobs;
      decision.steps.push_back(jobs->step);
    }
    decide_group(decision, counted, view, plan.history, places);
    plan.decisions.push_back(std::move(decision));
  }
  share(plan.decisions, view, plan.history.cycle++, places);
  for (auto& decision : plan.decisions) {
    fresh_pods(decision, left, plan.history.left_since);
    if (places) places->tell(decision);
    const bool wanted = decision.verdict == Verdict::submit || decision.verdict == Verdict::canary;
    if (wanted && decision.submit == 0) decision.verdict = Verdict::limited;
    if (decision.verdict == Verdict::canary && !places)
      canary_sent(plan.history.breakers[{decision.group, policy.image}], policy.settings, now);
    if (decision.submit > 0 && !plan.avoid.empty())
      decision.steps.push_back({Rule::avoids, {}, fmt::format("{}", fmt::join(plan.avoid, ", "))});
    if (decision.submit > 0 && !off.empty())
      decision.steps.push_back({Rule::drained_nodes, {}, fmt::format("{}", fmt::join(off, ", "))});
  }
  // A breaker that never opened, or whose group nobody has asked for in a long time, is not worth
  // remembering.
  std::erase_if(plan.history.breakers, [&](const auto& entry) {
    const auto& b = entry.second;
    const auto last = b.open ? b.next_canary + policy.settings.breaker_longest_pause : b.closed;
    return last + policy.settings.breaker_window < now && !(b.open && decisions.contains(entry.first.first));
  });
  std::erase_if(plan.history.refusals,
                [&](const auto& entry) { return entry.second.until + policy.settings.breaker_window < now; });
  plan.removals = removals(demand, supply, plan.decisions, plan.history, policy, now);
  return plan;
}

}  // namespace glidepod::provisioner
