#include "provisioner/decide/share.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace glidepod::provisioner {

namespace {

// A limit on all groups together.
struct Limit {
  std::string rule;
  std::int64_t left;
};

std::vector<Limit> limits_of(const Supply& supply, const PolicySettings& s, Time now) {
  std::int64_t unclaimed = 0, running = 0, live = 0;
  for (const auto& [group, pods] : supply.groups) {
    const auto without = homeless(pods, s, now) ? pods.unschedulable : 0;
    const auto waiting = std::max<std::int64_t>(pods.unclaimed() - without, 0);
    unclaimed += waiting;
    running += waiting + pods.claimed;
    live += std::max<std::int64_t>(pods.live() - without, 0);
  }
  std::vector<Limit> result;
  if (s.ramp_up > 0) result.push_back({"ramp_up", s.ramp_up});
  if (s.max_idle > 0) result.push_back({"max_idle", s.max_idle - unclaimed});
  if (s.max_running > 0) result.push_back({"max_running", s.max_running - running});
  if (s.max_pods > 0) result.push_back({"max_pods", s.max_pods - live});
  return result;
}

struct Owner {
  double priority = 1;
  double has = 0;                   // pods, each of them as much as the priority
  std::vector<std::size_t> groups;  // decisions that want more, by place
  std::size_t next = 0;             // of groups
};

// Waiting pods belong to the owners of their group's idle jobs, in proportion.
std::map<std::string, Owner> owners_of(const std::vector<Decision>& decisions, const Priorities& priorities,
                                       const Supply& supply, std::uint64_t cycle) {
  std::map<std::string, Owner> result;
  const auto owner_named = [&](const std::string& name) -> Owner& {
    return result.try_emplace(name, Owner{priorities.of_owner(name)}).first->second;
  };
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const auto at = (i + cycle) % decisions.size();
    const Decision& decision = decisions[at];
    const auto& jobs = decision.demand.owners;
    double idle = 0;
    for (const auto& [name, count] : jobs) idle += static_cast<double>(count);
    for (const auto& [name, count] : jobs) {
      auto& owner = owner_named(name);
      if (idle > 0)
        owner.has += static_cast<double>(decision.supply.unclaimed()) * static_cast<double>(count) / idle *
                     owner.priority;
      if (decision.submit > 0 && count > 0) owner.groups.push_back(at);
    }
    // Jobs that are yet to come have no owner so far.
    if (decision.submit > 0 && idle <= 0) owner_named({}).groups.push_back(at);
  }
  for (const auto& [name, claimed] : supply.claimed_by_owner)
    if (const auto owner = result.find(name); owner != result.end())
      owner->second.has += static_cast<double>(claimed) * owner->second.priority;
  return result;
}

// That others come first, where a limit has made it less.
void tell_priorities(Decision& decision, const std::map<std::string, Owner>& owners, double best) {
  auto own = std::numeric_limits<double>::max();
  for (const auto& [name, count] : decision.demand.owners)
    if (count > 0) own = std::min(own, owners.at(name).priority);
  if (decision.demand.owners.empty() || own <= best) return;
  decision.steps.push_back(
      fmt::format("priorities: the best of its owners' is {:.1f}, of all {:.1f}", own, best));
}

}  // namespace

bool homeless(const GroupSupply& supply, const PolicySettings& settings, Time now) {
  return settings.unschedulable_limit > Seconds(0) && supply.unschedulable > 0 &&
         supply.unschedulable == supply.live() - supply.unknown &&
         now - supply.unschedulable_since > settings.unschedulable_limit;
}

void share(std::vector<Decision>& decisions, const Priorities& priorities, const Supply& supply,
           const Capacity& capacity, const Policy& policy, Time now, std::uint64_t cycle, Placing* placing) {
  auto limits = limits_of(supply, policy.settings, now);
  auto quota = capacity.quota_left;
  if (decisions.empty() || (limits.empty() && !quota && !placing)) return;
  std::vector<std::int64_t> granted(decisions.size(), 0);
  std::vector<std::string> stopped_by(decisions.size());
  const auto grant = [&](std::size_t at) {
    const auto limit = std::ranges::find_if(limits, [](const Limit& l) { return l.left <= 0; });
    const auto need = capacity.needs.find(decisions[at].group);
    const bool known = quota && need != capacity.needs.end();
    if (limit != limits.end()) {
      stopped_by[at] = limit->rule;
    } else if (known && quota->holds(need->second, 1) == 0) {
      stopped_by[at] = "quota";
    } else if (placing && !placing->take(decisions[at].group)) {
      stopped_by[at] = "places";
    } else {
      ++granted[at];
      for (auto& l : limits) --l.left;
      if (known) quota = quota->minus(need->second);
      return true;
    }
    return false;
  };
  const auto done = [&](std::size_t at) {
    return granted[at] == decisions[at].submit || !stopped_by[at].empty();
  };

  auto owners = owners_of(decisions, priorities, supply, cycle);
  auto best = std::numeric_limits<double>::max();
  for (const auto& [name, owner] : owners)
    if (!owner.groups.empty()) best = std::min(best, owner.priority);
  struct Turn {
    double has;
    std::size_t order;
    Owner* owner;
    bool operator<(const Turn& other) const {  // the last of all comes first
      return has != other.has ? has > other.has : order > other.order;
    }
  };
  std::priority_queue<Turn> turns;
  std::size_t number = cycle;
  for (auto& [name, owner] : owners) turns.push({owner.has, number++ % owners.size(), &owner});
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    auto& groups = turn.owner->groups;
    while (!groups.empty()) {
      const auto place = turn.owner->next++ % groups.size();
      const auto at = groups[place];
      if (!done(at) && grant(at)) {
        turn.has += turn.owner->priority;
        turns.push(turn);
        break;
      }
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(place));
      turn.owner->next = place;
    }
  }
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (stopped_by[i].empty()) continue;
    const auto asked = decisions[i].submit;
    lower(decisions[i], granted[i], stopped_by[i]);
    if (decisions[i].submit < asked) tell_priorities(decisions[i], owners, best);
  }
}

}  // namespace glidepod::provisioner
