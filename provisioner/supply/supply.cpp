#include "provisioner/supply/supply.hpp"

#include <algorithm>
#include <set>

#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

std::string_view to_string(PodState state) {
  switch (state) {
    case PodState::gated:
      return "gated";
    case PodState::unschedulable:
      return "unschedulable";
    case PodState::pulling:
      return "pulling";
    case PodState::pull_error:
      return "pull error";
    case PodState::starting:
      return "starting";
    case PodState::unregistered:
      return "unregistered";
    case PodState::unmatched:
      return "unmatched";
    case PodState::claimed:
      return "claimed";
    case PodState::unknown:
      return "unknown";
    case PodState::succeeded:
      return "succeeded";
    case PodState::failed:
      return "failed";
  }
  return "?";
}

namespace {

enum class Standing : std::uint8_t { waiting, unmatched, claimed, broken, unknown, ended };

Standing standing(PodState state, Seconds age, const PolicySettings& policy) {
  switch (state) {
    case PodState::gated:
    case PodState::unschedulable:
      return Standing::waiting;  // room may come at any time
    case PodState::pull_error:
      return Standing::broken;
    case PodState::pulling:
      return age > policy.pull_limit ? Standing::broken : Standing::waiting;
    case PodState::starting:
    case PodState::unregistered:
      return age > policy.register_limit ? Standing::broken : Standing::waiting;
    case PodState::unmatched:
      return Standing::unmatched;
    case PodState::claimed:
      return Standing::claimed;
    case PodState::unknown:
      return Standing::unknown;
    case PodState::succeeded:
    case PodState::failed:
      return Standing::ended;
  }
  return Standing::unknown;
}

void count(GroupSupply& group, Standing as) {
  switch (as) {
    case Standing::waiting:
      ++group.waiting;
      break;
    case Standing::unmatched:
      ++group.unmatched;
      break;
    case Standing::claimed:
      ++group.claimed;
      break;
    case Standing::broken:
      ++group.broken;
      break;
    case Standing::unknown:
      ++group.unknown;
      break;
    case Standing::ended:
      break;
  }
}

}  // namespace

// What the pool's ads say of one pod.
struct Tracker::InPool {
  bool claimed = false, troubled = false;
  std::set<std::string> owners;
  std::optional<Resources> room;
};

std::map<std::string_view, Tracker::InPool> Tracker::by_pod(const std::vector<Slot>& slots, Time now) {
  std::map<std::string_view, InPool> result;
  for (const auto& slot : slots) {
    auto& entry = result[slot.pod];
    entry.claimed = entry.claimed || slot.claimed;
    entry.troubled = entry.troubled || !slot.trouble.empty();
    if (slot.claimed && !slot.owner.empty()) entry.owners.insert(slot.owner);
    if (slot.room && now < slot.room_until) entry.room = *slot.room;
  }
  return result;
}

void Tracker::note(List list, const std::string& pod, const Memory& memory, Time now) {
  (outcomes_[memory.group].*list).push_back({{now, pod, memory.node}, memory.image});
}

void Tracker::settle(const std::string& pod, Memory& memory, PodEnd end, bool failed, Time now) {
  if (std::exchange(memory.settled, true)) return;
  auto& outcomes = outcomes_[memory.group];
  if (memory.had_job) {
    outcomes.used.push_back(now);
  } else if (end == PodEnd::refused) {
    note(&Fates::refusals, pod, memory, now);
  } else if (memory.registered && memory.older) {
    return;
  } else if (end == PodEnd::own && memory.registered) {
    outcomes.wasted.push_back(now);
    if (failed) note(&Fates::crashes, pod, memory, now);
  } else if (end == PodEnd::own && !memory.broken) {
    note(&Fates::failures, pod, memory, now);
  }
}

void Tracker::forget_old(const PolicySettings& policy, Time now) {
  const auto dated = [&](const Fates::Event& e) { return e.outcome.at + policy.breaker_window < now; };
  const auto past = [&](Time t) { return t + policy.waste_window < now; };
  for (auto entry = outcomes_.begin(); entry != outcomes_.end();) {
    auto& o = entry->second;
    bool empty = true;
    for (auto* list : {&o.failures, &o.registrations, &o.crashes, &o.refusals}) {
      std::erase_if(*list, dated);
      empty = empty && list->empty();
    }
    for (auto* list : {&o.wasted, &o.used}) {
      std::erase_if(*list, past);
      empty = empty && list->empty();
    }
    entry = empty ? outcomes_.erase(entry) : std::next(entry);
  }
}

void Tracker::add_outcomes(Supply& supply, const std::set<std::string, std::less<>>& images) const {
  constexpr std::pair<List, std::vector<Outcome> GroupSupply::*> k_lists[] = {
      {&Fates::failures, &GroupSupply::failures},
      {&Fates::registrations, &GroupSupply::registrations},
      {&Fates::crashes, &GroupSupply::crashes},
      {&Fates::refusals, &GroupSupply::refusals}};
  for (const auto& [group, outcomes] : outcomes_) {
    auto& sum = supply.groups[group];
    for (const auto& [from, to] : k_lists)
      for (const auto& event : outcomes.*from) {
        if (!images.contains(event.image)) continue;
        (sum.*to).push_back(event.outcome);
        const auto place = supply.places.find(std::string(place_of(event.outcome.pod)));
        if (place != supply.places.end()) (place->second.groups[group].*to).push_back(event.outcome);
      }
    sum.wasted = static_cast<std::int64_t>(outcomes.wasted.size());
    sum.used = static_cast<std::int64_t>(outcomes.used.size());
  }
}

void Tracker::created(const std::string& pod, const Group& group, std::string_view image) {
  auto& memory = pods_[pod];
  memory.group = group;
  memory.image = image;
  memory.seen = cycle_;
  memory.known = true;
}

Supply Tracker::observe(const std::vector<Pod>& pods, const std::vector<Slot>& slots,
                        const PolicySettings& policy, std::string_view image, Time now) {
  return observe(pods, slots, policy, {std::string(image)}, {}, now);
}

Tracker::Memory& Tracker::remembered(const Pod& pod, bool ended) {
  auto& memory = pods_[pod.name];
  memory.seen = cycle_;
  if (!std::exchange(memory.known, true)) {
    memory.group = pod.group;
    memory.image = pod.image;
    // It ended before this provisioner was started: nobody knows how it fared.
    memory.settled = ended;
    // Another one may have counted it.
    const auto& fates = outcomes_[pod.group];
    const auto has = [&pod](const std::vector<Fates::Event>& events) {
      return std::ranges::any_of(events, [&](const auto& event) { return event.outcome.pod == pod.name; });
    };
    memory.broken = has(fates.failures);
    memory.troubled = has(fates.refusals);
  }
  if (!pod.node.empty()) memory.node = pod.node;
  return memory;
}

// What the pool's ads say of a pod that has not ended.
PodState Tracker::joined(const Pod& pod, Memory& memory, const InPool& ads, Supply& supply, const Sums& sums,
                         Time now) {
  memory.had_job = memory.had_job || ads.claimed;
  for (const auto& owner : ads.owners) ++supply.claimed_by_owner[owner];
  if (!std::exchange(memory.registered, true)) {
    // At the first look nobody knows when it joined, but not before its pilot ran.
    memory.older = cycle_ == 1;
    note(&Fates::registrations, pod.name, memory, memory.older ? std::min(pod.since, now) : now);
  }
  if (ads.troubled && !std::exchange(memory.troubled, true)) note(&Fates::refusals, pod.name, memory, now);
  if (!memory.troubled && !pod.node.empty())
    for (auto* sum : sums) sum->at_work.insert(pod.node);
  const bool ends_soon = pod.near_end != Time{} && now >= pod.near_end;
  if (ads.room && !memory.troubled && !pod.leaving && pod.drained.empty() && !ends_soon)
    supply.rooms.push_back({pod.group, *ads.room, ads.claimed});
  return ads.claimed ? PodState::claimed : PodState::unmatched;
}

bool JoblessPod::waits_for_node() const {
  return (state == PodState::unschedulable || state == PodState::gated) && !node_comes && !outdated &&
         drained.empty();
}

// A pod that the pool has no ad of, and that has no job for certain. Whether it is made otherwise now.
bool Tracker::jobless(const Pod& pod, bool broken, Supply& supply, const Sums& sums) {
  // One that is about to run is let run, whatever made it.
  const bool outdated = pod.outdated && (pod.state != PodState::pulling || broken);
  supply.jobless.push_back(
      {pod.name, pod.group, pod.state, pod.since, outdated, pod.message, pod.node_comes, pod.drained});
  if (supply.jobless.back().waits_for_node())
    for (auto* sum : sums) {
      const bool first = sum->unschedulable++ == 0;
      sum->unschedulable_since = first ? pod.since : std::min(sum->unschedulable_since, pod.since);
    }
  return outdated;
}

void Tracker::take(const Pod& pod, const InPool* ads, const PolicySettings& policy, Supply& supply,
                   Time now) {
  Sums sums = {&supply.groups[pod.group]};
  if (const auto place = supply.places.find(std::string(place_of(pod.name))); place != supply.places.end())
    sums.push_back(&place->second.groups[pod.group]);
  const bool ended = pod.state == PodState::succeeded || pod.state == PodState::failed;
  auto& memory = remembered(pod, ended);
  // An ad outlives its pilot by some minutes in the collector.
  const auto state = ads && !ended ? joined(pod, memory, *ads, supply, sums, now) : pod.state;
  for (auto* sum : sums) ++sum->states[state];
  // A pilot whose ad was seen once is no failure when the ad is missing: collectors restart.
  auto as = memory.registered && state == PodState::unregistered ? Standing::unmatched
                                                                 : standing(state, now - pod.since, policy);
  // A job's image keeps it waiting: it is in the way of no other pod, and its end is no failure of its
  // pilot's.
  if (as == Standing::broken && !pod.awaits.empty()) {
    as = Standing::unknown;
    memory.broken = true;
  }
  // It takes no more jobs, so that nobody waits for it, and how it ends is no doing of its pilot's.
  if (!pod.drained.empty() && as != Standing::claimed && as != Standing::ended) as = Standing::unknown;
  const bool outdated = pod.jobless && !ads && jobless(pod, as == Standing::broken, supply, sums);
  for (auto* sum : sums) count(*sum, outdated ? Standing::unknown : as);
  if (as == Standing::broken && !std::exchange(memory.broken, true))
    note(&Fates::failures, pod.name, memory, now);
  if (!ended) return;
  settle(pod.name, memory, pod.drained.empty() ? pod.end : PodEnd::taken, state == PodState::failed, now);
  supply.ended.push_back({pod.name, state == PodState::failed, pod.since, ++memory.sightings_ended});
}

Supply Tracker::observe(const std::vector<Pod>& pods, const std::vector<Slot>& slots,
                        const PolicySettings& policy, const std::set<std::string, std::less<>>& images,
                        std::map<std::string, PlaceSupply> places, Time now) {
  ++cycle_;
  const auto in_pool = by_pod(slots, now);
  Supply supply;
  supply.places = std::move(places);
  for (const auto& pod : pods) {
    const auto ads = in_pool.find(pod.name);
    take(pod, ads == in_pool.end() ? nullptr : &ads->second, policy, supply, now);
  }
  for (auto entry = pods_.begin(); entry != pods_.end();) {
    const bool vanished = entry->second.seen != cycle_;
    // One that ends by itself is seen to have ended; this one was deleted, by whomever.
    if (vanished) settle(entry->first, entry->second, PodEnd::taken, false, now);
    entry = vanished ? pods_.erase(entry) : std::next(entry);
  }
  forget_old(policy, now);
  add_outcomes(supply, images);
  return supply;
}

}  // namespace glidepod::provisioner
