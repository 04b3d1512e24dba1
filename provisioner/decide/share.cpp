#include "provisioner/decide/share.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "lib/base/found.hpp"

namespace glidepod::provisioner {

namespace {

// What all groups together may still have.
class Limits {
 public:
  Limits(const View& view, Placing* placing)
      : needs_(view.capacity.needs), quota_(view.capacity.quota_left), placing_(placing) {
    const auto& s = view.policy.settings;
    std::int64_t unclaimed = 0, running = 0, live = 0, cores = 0;
    for (const auto& [group, pods] : view.supply.groups) {
      const auto without = homeless(pods, s, view.now) ? pods.unschedulable : 0;
      const auto waiting = pods.unclaimed() - without;
      unclaimed += waiting;
      running += waiting + pods.claimed;
      const auto alive = pods.live() - without;
      live += alive;
      cores += alive * group.cpus;
    }
    if (s.ramp_up > 0) limits_.push_back({Rule::ramp_up, s.ramp_up});
    if (s.max_idle > 0) {
      limits_.push_back({Rule::max_idle, s.max_idle - unclaimed});
      if (s.unschedulable_limit > Seconds(0)) count_stuck(view.supply, s, view.now);
    }
    if (s.max_running > 0) limits_.push_back({Rule::max_running, s.max_running - running});
    if (s.max_pods > 0) limits_.push_back({Rule::max_pods, s.max_pods - live});
    if (s.max_cores > 0) cores_left_ = s.max_cores - cores;
  }
  // Takes one pod of the group from all limits, or says which of them has none left.
  std::optional<Rule> take(const Group& group) {
    const auto limit = std::ranges::find_if(limits_, [&](const Limit& l) {
      return l.left + (l.rule == Rule::max_idle ? of_others(group) : 0) <= 0;
    });
    if (limit != limits_.end()) return limit->rule;
    // A smaller group may still have what this one needs too much of.
    if (cores_left_ && *cores_left_ < group.cpus) return Rule::max_cores;
    const auto* need = found_in(needs_, group);
    const bool known = quota_ && need;
    if (known && quota_->holds(*need, 1) == 0) return Rule::quota;
    if (placing_ && !placing_->take(group)) return Rule::places;
    for (auto& l : limits_) --l.left;
    if (cores_left_) *cores_left_ -= group.cpus;
    if (known) quota_ = quota_->minus(*need);
    return std::nullopt;
  }

 private:
  struct Limit {
    Rule rule;
    std::int64_t left;
  };
  // A pod that has long had no node, in a group that has others, is in the way of its own group only: it may
  // wait for a size that is taken everywhere, while there is room for other sizes.
  void count_stuck(const Supply& supply, const PolicySettings& settings, Time now) {
    for (const auto& pod : supply.jobless) {
      const bool waits = pod.waits_for_node() && now - pod.since > settings.unschedulable_limit;
      const auto* pods = waits ? found_in(supply.groups, pod.group) : nullptr;
      if (pods == nullptr || homeless(*pods, settings, now)) continue;
      ++stuck_[pod.group];
      ++all_stuck_;
    }
  }
  std::int64_t of_others(const Group& group) const {
    const auto* own = found_in(stuck_, group);
    return all_stuck_ - (own ? *own : 0);
  }

  std::vector<Limit> limits_;
  std::map<Group, std::int64_t> stuck_;
  std::int64_t all_stuck_ = 0;
  std::optional<std::int64_t> cores_left_;
  const std::map<Group, Resources>& needs_;
  std::optional<Resources> quota_;
  Placing* placing_;
};

struct Owner {
  double priority = 1;
  double has = 0;                   // pods, each of them as much as the priority
  std::vector<std::size_t> groups;  // decisions that want more, by place
  std::size_t next = 0;             // of groups
};

// Waiting pods belong to the owners of their group's idle jobs, in proportion.
std::map<std::string, Owner> owners_of(const std::vector<Decision>& decisions, const View& view,
                                       std::uint64_t cycle) {
  std::map<std::string, Owner> result;
  const auto owner_named = [&](const std::string& name) -> Owner& {
    return result.try_emplace(name, Owner{view.demand.priorities.of_owner(name)}).first->second;
  };
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const auto at = (i + cycle) % decisions.size();
    const Decision& decision = decisions[at];
    const auto& jobs = decision.demand.owners;
    double idle = 0;
    for (const auto& [name, count] : jobs) idle += static_cast<double>(count);
    for (const auto& [name, count] : jobs) {
      if (count <= 0) continue;
      auto& owner = owner_named(name);
      owner.has += static_cast<double>(decision.supply.unclaimed()) * static_cast<double>(count) / idle *
                   owner.priority;
      if (decision.submit > 0) owner.groups.push_back(at);
    }
    // Jobs that are yet to come have no owner so far.
    if (decision.submit > 0 && idle <= 0) owner_named({}).groups.push_back(at);
  }
  for (const auto& [name, claimed] : view.supply.claimed_by_owner)
    if (auto* owner = found_in(result, name)) owner->has += static_cast<double>(claimed) * owner->priority;
  return result;
}

// Whose turn it is: the owner's who has least.
struct Turn {
  double has;
  std::size_t order;
  Owner* owner;
  bool operator<(const Turn& other) const {  // the last of all comes first
    return std::pair(has, order) > std::pair(other.has, other.order);
  }
};

// Priorities are told in tenths, and none above what any owner can have.
std::int64_t tenths(double priority) {
  return std::llround(std::clamp(priority, 0.0, 1e15) * 10);
}

// Says that others come first, where a limit has lowered what the group gets.
void tell_priorities(Decision& decision, const std::map<std::string, Owner>& owners, double best) {
  auto own = std::numeric_limits<double>::max();
  for (const auto& [name, count] : decision.demand.owners)
    if (count > 0) own = std::min(own, owners.at(name).priority);
  if (decision.demand.owners.empty() || own <= best) return;
  decision.steps.push_back({Rule::priorities, {tenths(own), tenths(best)}});
}

}  // namespace

bool homeless(const GroupSupply& supply, const PolicySettings& settings, Time now) {
  return settings.unschedulable_limit > Seconds(0) && supply.unschedulable > 0 &&
         supply.unschedulable == supply.live() - supply.unknown &&
         now - supply.unschedulable_since > settings.unschedulable_limit;
}

void share(std::vector<Decision>& decisions, const View& view, std::uint64_t cycle, Placing* placing) {
  Limits limits(view, placing);
  std::vector<std::int64_t> granted(decisions.size(), 0);
  std::vector<std::optional<Rule>> stopped_by(decisions.size());
  auto owners = owners_of(decisions, view, cycle);
  auto best = std::numeric_limits<double>::max();
  for (const auto& [name, owner] : owners)
    if (!owner.groups.empty()) best = std::min(best, owner.priority);
  std::priority_queue<Turn> turns;
  std::size_t number = cycle;
  for (auto& [name, owner] : owners) turns.push({owner.has, number++ % owners.size(), &owner});
  const auto gets_one = [&](std::size_t at) {
    if (granted[at] == decisions[at].submit || stopped_by[at]) return false;
    stopped_by[at] = limits.take(decisions[at].group);
    if (stopped_by[at]) return false;
    ++granted[at];
    return true;
  };
  while (!turns.empty()) {
    Turn turn = turns.top();
    turns.pop();
    auto& groups = turn.owner->groups;
    while (!groups.empty()) {
      const auto place = turn.owner->next++ % groups.size();
      if (gets_one(groups[place])) {
        turn.has += turn.owner->priority;
        turns.push(turn);
        break;
      }
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(place));
      turn.owner->next = place;
    }
  }
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (!stopped_by[i]) continue;
    lower(decisions[i], granted[i], *stopped_by[i]);
    tell_priorities(decisions[i], owners, best);
  }
}

}  // namespace glidepod::provisioner
