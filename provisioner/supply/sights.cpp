#include "provisioner/supply/sights.hpp"

#include <algorithm>
#include <set>

#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

std::map<std::string, PlaceSupply> Sights::complete(std::vector<Pod>& pods,
                                                    const std::vector<std::string>& places,
                                                    const std::map<std::string, std::string>& unseen,
                                                    const std::vector<Slot>& slots, Seconds outage_shift,
                                                    Time now) {
  std::set<std::string_view> in_pool;
  for (const auto& slot : slots) in_pool.insert(slot.pod);
  std::map<std::string, PlaceSupply> result;
  for (const auto& place : places) {
    auto& supply = result[place];
    auto& last = last_.try_emplace(place, Sight{now, {}}).first->second;
    if (const auto why = unseen.find(place); why != unseen.end()) {
      supply.unseen = why->second;
      supply.unseen_for = now - last.at;
      supply.unknown = !last.seen && supply.unseen_for < outage_shift;
    } else {
      last = {now, {}, true};
    }
  }
  for (const auto& pod : pods)
    if (const auto sight = last_.find(std::string(place_of(pod.name))); sight != last_.end())
      sight->second.pods.push_back(pod);
  for (const auto& [place, why] : unseen) {
    const auto& last = last_[place];
    for (auto pod : last.pods) {
      if (pod.state == PodState::succeeded || pod.state == PodState::failed) continue;
      if (now - last.at >= outage_shift && !in_pool.contains(pod.name)) continue;
      pod.since = std::min(pod.since + (now - last.at), now);
      pod.jobless = pod.outdated = false;
      pods.push_back(std::move(pod));
    }
  }
  return result;
}

void Sights::made(const std::string& pod, const Group& group, std::string_view image, Time now) {
  const auto sight = last_.find(std::string(place_of(pod)));
  if (sight != last_.end())
    sight->second.pods.push_back({pod, group, std::string(image), PodState::unschedulable, now});
}

}  // namespace glidepod::provisioner
