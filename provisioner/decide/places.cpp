#include "provisioner/decide/places.hpp"

#include <algorithm>
#include <tuple>

#include "lib/base/found.hpp"
#include "provisioner/decide/breaker.hpp"
#include "provisioner/decide/nodes.hpp"
#include "provisioner/decide/share.hpp"

namespace glidepod::provisioner {

namespace {

const GroupSupply& pods_of(const PlaceSupply& place, const Group& group) {
  static const GroupSupply none;
  const auto* found = found_in(place.groups, group);
  return found ? *found : none;
}

}  // namespace

void set_places(Policy& policy, std::vector<PlacePolicy> places) {
  policy.places = std::move(places);
  if (policy.places.empty()) return;
  policy.max_pods_per_cluster = policy.max_submit_pods_per_cluster = 0;
  for (const auto& place : policy.places) {
    policy.max_pods_per_cluster += place.max_pods_per_cluster;
    policy.max_submit_pods_per_cluster += place.max_submit_pods_per_cluster;
  }
}

Placing::Placing(const Supply& supply, const Capacity& capacity, const Policy& policy, History& history,
                 Time now)
    : policy_(policy), history_(history), now_(now) {
  static const PlaceSupply no_pods;
  static const Capacity not_known;
  for (const auto& place : policy.places) {
    const auto* pods = found_in(supply.places, place.name);
    const auto* room = found_in(capacity.places, place.name);
    auto& added = places_.emplace_back(Place{&place, pods ? pods : &no_pods, room ? room : &not_known});
    for (const auto& [group, sum] : added.supply->groups) added.live += sum.live();
    added.quota = added.capacity->quota_left;
    if (added.supply->unknown) unknown_ = place.name;
  }
}

Placing::Room Placing::room_of(const Place& place, const Group& group) {
  const auto& p = *place.policy;
  const auto& s = policy_.settings;
  Room room;
  auto& breaker = history_.breakers[{group, p.image}];
  const auto pods =
      without_nodes(pods_of(*place.supply, group), history_.nodes, breaker.closed, now_ - s.waste_window);
  room.homeless = provisioner::homeless(pods, s, now_);
  room.left = p.max_pods_per_cluster - pods.unclaimed();
  room.why = {Rule::max_pods_per_cluster, {p.max_pods_per_cluster, pods.unclaimed()}, {}, p.name};
  const auto lower = [&room, &p](std::int64_t limit, Step why) {
    if (limit >= room.left) return;
    room.left = limit;
    room.why = std::move(why);
    room.why.place = p.name;
  };
  if (const auto* entry = drained(policy_.drained, Drained::Kind::place, p.name))
    lower(0, step_of(*entry, now_));
  lower(p.max_submit_pods_per_cluster - pods.live(),
        {Rule::max_submit_pods_per_cluster, {p.max_submit_pods_per_cluster, pods.live()}});
  if (room.homeless)
    lower(1 - pods.unclaimed(), {Rule::no_node, {(now_ - pods.unschedulable_since).count()}});
  // A breaker learns nothing from a place that is not seen.
  if (!place.supply->unseen.empty()) {
    lower(0, {Rule::unseen, {place.supply->unseen_for.count()}});
  } else if (const auto says = consult(breaker, pods, s, now_); says.allowed >= 0) {
    room.stopped = true;
    lower(says.allowed, says.why);
  }
  if (const auto api = refused(history_, group, p.name, now_); api.allowed >= 0) lower(api.allowed, api.why);
  if (const auto why = provisioner::why_unservable(group, *place.capacity)) lower(0, *why);
  if (!unknown_.empty()) lower(0, {Rule::waits_for_unseen, {}, unknown_});
  return room;
}

std::vector<Placing::Room>& Placing::rooms_of(const Group& group) {
  const auto [found, first] = rooms_.try_emplace(group);
  if (first)
    for (const auto& place : places_) found->second.push_back(room_of(place, group));
  return found->second;
}

std::vector<Step> Placing::why_unservable(const Group& group) const {
  std::vector<Step> all;
  for (const auto& place : places_) {
    const auto why = provisioner::why_unservable(group, *place.capacity);
    if (!why) return {};
    all.push_back(*why);
    all.back().place = place.policy->name;
  }
  return all;
}

bool Placing::homeless(const Group& group) {
  return std::ranges::all_of(rooms_of(group), [](const Room& room) { return room.homeless; });
}

std::vector<std::string> Placing::without_room(const Group& group) {
  std::vector<std::string> result;
  if (homeless(group)) return result;
  const auto& rooms = rooms_of(group);
  for (std::size_t i = 0; i < rooms.size(); ++i)
    if (rooms[i].homeless) result.push_back(places_[i].policy->name);
  return result;
}

std::int64_t Placing::stuck(const Group& group) {
  std::int64_t sum = 0;
  if (homeless(group)) return sum;
  const auto& rooms = rooms_of(group);
  for (std::size_t i = 0; i < rooms.size(); ++i)
    if (rooms[i].homeless) sum += pods_of(*places_[i].supply, group).unschedulable;
  return sum;
}

bool Placing::offers(const Place& place, Room& room, const Group& group) const {
  const auto* need = found_in(place.capacity->needs, group);
  const auto most = place.policy->max_pods;
  if (room.given >= room.left) {
    room.said = true;
  } else if (most > 0 && place.live >= most) {
    room.said = true;
    room.why = {Rule::max_pods, {most, place.live}, {}, place.policy->name};
  } else if (place.quota && need && place.quota->holds(*need, 1) == 0) {
    room.said = true;
    room.why = {Rule::quota, {}, {}, place.policy->name};
  } else {
    return true;
  }
  return false;
}

bool Placing::take(const Group& group) {
  auto& rooms = rooms_of(group);
  std::size_t best = places_.size();
  const auto before = [](const Place& a, const Place& b) {
    const auto wa = a.policy->weight, wb = b.policy->weight;
    // By pods for the weight. A place without a weight is never before one that has one, and two of them have
    // equal shares.
    return std::tuple(a.live * wb, -wa, a.live) < std::tuple(b.live * wa, -wb, b.live);
  };
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (offers(places_[i], rooms[i], group) && (best == places_.size() || before(places_[i], places_[best])))
      best = i;
  if (best == places_.size()) return false;
  auto& place = places_[best];
  ++place.live;
  ++rooms[best].given;
  const auto* need = found_in(place.capacity->needs, group);
  if (place.quota && need) place.quota = place.quota->minus(*need);
  return true;
}

void Placing::tell(Decision& decision) {
  const auto& rooms = rooms_of(decision.group);
  std::string given;
  bool all_stopped = true, only_canaries = true;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    const auto& room = rooms[i];
    const auto& place = places_[i];
    const auto& pods = pods_of(*place.supply, decision.group);
    decision.places.push_back({place.policy->name, room.given, pods.unclaimed(), pods.claimed, room.stopped,
                               room.said ? std::optional(room.why) : std::nullopt});
    all_stopped = all_stopped && room.stopped;
    only_canaries = only_canaries && (room.stopped || room.given == 0);
    if (room.said) decision.steps.push_back(room.why);
    if (room.given == 0) continue;
    given += fmt::format("{}{} in {}", given.empty() ? "" : ", ", room.given, place.policy->name);
    if (room.stopped)
      canary_sent(history_.breakers[{decision.group, place.policy->image}], policy_.settings, now_);
  }
  if (!given.empty()) decision.steps.push_back({Rule::placed, {}, given});
  if (decision.verdict != Decision::Verdict::submit) return;
  if (only_canaries) decision.verdict = Decision::Verdict::canary;
  if (decision.submit == 0 && all_stopped) decision.verdict = Decision::Verdict::stopped;
}

}  // namespace glidepod::provisioner
