#include "provisioner/decide/removal.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "lib/base/found.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {

// Why this pod must go; nothing where it may stay.
std::optional<std::string> why(const EndedPod& pod, const Policy& policy, std::int64_t newer_alike,
                               Time now) {
  const auto& s = policy.settings;
  if (policy.sightings_before_removal > 0) {
    if (pod.sightings < policy.sightings_before_removal) return std::nullopt;
    return fmt::format("ended, seen {} times", pod.sightings);
  }
  if (newer_alike >= (pod.failed ? s.failed_kept : s.finished_kept))
    return fmt::format("{} newer {} pods are kept", newer_alike, pod.failed ? "failed" : "finished");
  const auto age = now - pod.ended;
  if (pod.failed || age <= policy.finished_ttl) return std::nullopt;
  return fmt::format("finished {} s ago", age.count());
}

// Why this pod must go, whatever its group wants; nothing where it may stay.
std::optional<std::string> why_not(const JoblessPod& pod, const PolicySettings& policy, Time now) {
  if (!pod.drained.empty()) return "drained: " + pod.drained;
  if (pod.outdated) return "made with other settings";
  if (pod.state == PodState::unschedulable || pod.state == PodState::gated)
    return std::nullopt;  // room may come at any time
  const bool image = pod.state == PodState::pull_error || pod.state == PodState::pulling;
  const auto age = now - pod.since;
  if (age <= 2 * (image ? policy.pull_limit : policy.register_limit)) return std::nullopt;
  return fmt::format("{} for {} s", to_string(pod.state), age.count());
}

// Of pods that have long had no node in a place, while others may have room, the oldest stays: it shows when
// there is room.
void take_stuck(std::map<Group, std::vector<JoblessPod>>& spare, const std::vector<Decision>& decisions,
                std::vector<Removal>& result) {
  for (const auto& d : decisions)
    for (const auto& place : d.without_room) {
      auto& pods = spare[d.group];
      const auto stuck = std::stable_partition(pods.begin(), pods.end(), [&place](const JoblessPod& pod) {
        return place_of(pod.name) != place || !pod.waits_for_node();
      });
      const auto oldest = std::min_element(
          stuck, pods.end(), [](const JoblessPod& a, const JoblessPod& b) { return a.since < b.since; });
      for (auto pod = stuck; pod != pods.end(); ++pod)
        if (pod != oldest)
          result.push_back({pod->name, "no node in " + place + ", where others may have room"});
      pods.erase(stuck, pods.end());
    }
}

// What a group has more than it asks for, the newest first, once that has lasted long enough. What is not
// known of the demand or of a place for a while changes nothing.
void take_surplus(const std::map<Group, std::vector<JoblessPod>>& spare,
                  const std::map<std::string, PlaceSupply>& places, const Demand& demand,
                  const std::vector<Decision>& decisions, History& history, const PolicySettings& policy,
                  Time now, std::vector<Removal>& result) {
  const bool sees_all =
      std::ranges::all_of(places, [](const auto& place) { return place.second.unseen.empty(); });
  if (demand.schedds_failed > 0 || !sees_all || policy.take_back_after == Seconds(0)) return;
  const auto before = std::exchange(history.surplus_since, {});
  for (const auto& d : decisions) {
    const auto* found = found_in(spare, d.group);
    if (!found) continue;
    auto pods = *found;
    // One that waits for its image waits for jobs, too, while there are any; as does one that a node comes
    // for.
    if (d.keep > 0) std::erase_if(pods, std::not_fn(&JoblessPod::waits_for_node));
    auto above = static_cast<std::int64_t>(pods.size());
    if (d.keep > 0) above = std::min(above, d.supply.unclaimed() - d.stuck - d.keep);
    if (above <= 0) continue;
    const auto* known = found_in(before, d.group);
    const auto since = history.surplus_since[d.group] = known ? *known : now;
    if (now - since < policy.take_back_after) continue;
    std::ranges::sort(pods, std::greater{},
                      [](const JoblessPod& pod) { return std::pair(pod.since, std::string_view(pod.name)); });
    pods.resize(static_cast<std::size_t>(above));
    for (const auto& pod : pods)
      result.push_back({pod.name, fmt::format("{} wanted for {} s", d.keep, (now - since).count())});
  }
}

}  // namespace

std::vector<Removal> removals(const Demand& demand, const Supply& supply,
                              const std::vector<Decision>& decisions, History& history, const Policy& policy,
                              Time now) {
  auto ended = supply.ended;
  // The newest first; equal times by name, so that the same pods are kept in every cycle.
  std::ranges::sort(ended, std::greater{},
                    [](const EndedPod& pod) { return std::pair(pod.ended, std::string_view(pod.name)); });
  std::vector<Removal> result;
  std::int64_t newer[2] = {0, 0};
  for (const auto& pod : ended) {
    if (auto reason = why(pod, policy, newer[pod.failed]++, now))
      result.push_back({pod.name, std::move(*reason)});
  }
  std::map<Group, std::vector<JoblessPod>> spare;
  for (const auto& pod : supply.jobless) {
    if (auto reason = why_not(pod, policy.settings, now))
      result.push_back({pod.name, std::move(*reason)});
    else if (pod.state == PodState::gated || pod.state == PodState::unschedulable ||
             pod.state == PodState::pull_error)
      spare[pod.group].push_back(pod);
  }
  take_stuck(spare, decisions, result);
  take_surplus(spare, supply.places, demand, decisions, history, policy.settings, now, result);
  // Those that take room, then the oldest, go first where not all can go.
  std::reverse(result.begin(), result.end());
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(policy.removals_per_cycle, 0));
  result.resize(std::min(result.size(), most));
  return result;
}

}  // namespace glidepod::provisioner
