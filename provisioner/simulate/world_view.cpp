#include <algorithm>

#include "provisioner/simulate/world.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

Demand World::demand() const {
  Demand result;
  if (now_ >= model_.blind_from && now_ < model_.blind_until) result.blind = "the pool cannot be asked";
  for (std::size_t i = 0; i < idle_.size(); ++i) {
    if (idle_[i] == 0 || uncounted_[i]) continue;
    auto& group = result.groups[scenario_.streams[i].group];
    group.idle += idle_[i];
    group.owners[scenario_.streams[i].owner] += idle_[i];
  }
  return result;
}

Supply World::supply(const PolicySettings& rules) {
  Supply result;
  const Time now(now_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto pods = supplies_[g];
    const auto count = [&pods](PodState state) {
      const auto found = pods.states.find(state);
      return found == pods.states.end() ? std::int64_t{0} : found->second;
    };
    pods.broken = count(PodState::pull_error) + overdue_[g];
    pods.waiting = count(PodState::unschedulable) + count(PodState::pulling) + count(PodState::unregistered) -
                   overdue_[g];
    pods.unmatched = count(PodState::unmatched);
    pods.claimed = count(PodState::claimed);
    auto& o = outcomes_[g];
    for (auto* list : {&o.failures, &o.registrations})
      while (!list->empty() && list->front().at + rules.breaker_window < now) list->pop_front();
    for (auto* times : {&o.wasted, &o.used})
      while (!times->empty() && times->front() + rules.waste_window < now) times->pop_front();
    pods.failures.assign(o.failures.begin(), o.failures.end());
    pods.registrations.assign(o.registrations.begin(), o.registrations.end());
    pods.wasted = static_cast<std::int64_t>(o.wasted.size());
    pods.used = static_cast<std::int64_t>(o.used.size());
    // More names say no more: this many hold one that is neither avoided nor the node in question.
    for (const auto& [node, there] : o.at_work) {
      if (static_cast<std::int64_t>(pods.at_work.size()) > rules.nodes_avoided + 1) break;
      if (!node.empty()) pods.at_work.insert(node);
    }
    result.groups[groups_[g]] = std::move(pods);
  }
  for (const auto index : jobless_) {
    const auto& pod = pods_[index];
    const Time since(pod.born);
    const bool waits = pod.state == PodState::unschedulable;
    auto& group = result.groups[groups_[pod.group]];
    // One that is kept from a node which is not avoided any more is made anew.
    const bool outdated =
        waits && pod.node == Cluster::k_nowhere && !std::ranges::includes(avoids_.back(), *pod.wish.avoids);
    result.jobless.push_back({std::to_string(index), groups_[pod.group], pod.state, since, outdated});
    if (outdated) {
      --group.waiting;
      ++group.unknown;
    } else if (waits) {
      const bool first = group.unschedulable++ == 0;
      group.unschedulable_since = first ? since : std::min(group.unschedulable_since, since);
    }
  }
  result.claimed_by_owner = claimed_by_owner_;
  return result;
}

Supply World::supply_of_places() {
  const auto& policy = scenario_.policy;
  std::map<std::string, std::string> unseen;
  std::vector<std::string> names;
  std::set<std::string, std::less<>> images;
  for (std::size_t i = 0; i < policy.places.size(); ++i) {
    names.push_back(policy.places[i].name);
    images.insert(policy.places[i].image);
    const auto& place = scenario_.places[i];
    if (now_ >= place.down_from && now_ < place.down_until) unseen[names.back()] = "its API does not answer";
  }
  std::vector<provisioner::Pod> seen;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const auto& pod = pods_[i];
    if (pod.gone) continue;
    const auto& place = policy.places[pod.wish.place];
    const auto name = in_place(place.name, std::to_string(i));
    const bool claimed = pod.state == PodState::claimed;
    const bool in_pool = claimed || pod.state == PodState::unmatched;
    if (in_pool) slots.push_back({name, claimed, claimed ? scenario_.streams[pod.stream].owner : ""});
    if (unseen.contains(place.name)) continue;
    auto& added =
        seen.emplace_back(provisioner::Pod{name, groups_[pod.group], place.image,
                                           in_pool ? PodState::unregistered : pod.state, Time(pod.since)});
    added.jobless = jobless_.contains(i);
  }
  auto places = sights_.complete(seen, names, unseen, slots, policy.settings.outage_shift, Time(now_));
  return tracker_.observe(seen, slots, policy.settings, images, std::move(places), Time(now_));
}

}  // namespace glidepod::provisioner
