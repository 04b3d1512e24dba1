#include "provisioner/decide/removal.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

std::string why(const EndedPod& pod, const Policy& policy, std::int64_t newer_alike, Time now) {
  const auto& s = policy.settings;
  if (policy.sightings_before_removal > 0)
    return pod.sightings >= policy.sightings_before_removal
               ? fmt::format("ended, seen {} times", pod.sightings)
               : "";
  if (pod.failed)
    return newer_alike >= s.failed_kept ? fmt::format("{} newer failed pods are kept", newer_alike) : "";
  if (newer_alike >= s.finished_kept) return fmt::format("{} newer finished pods are kept", newer_alike);
  const auto age = now - pod.ended;
  return age > policy.finished_ttl ? fmt::format("finished {} s ago", age.count()) : "";
}

}  // namespace

std::vector<Removal> removals(std::vector<EndedPod> ended, const std::vector<StuckPod>& stuck,
                              const Policy& policy, Time now) {
  // The newest first; equal times by name, so that the same pods are kept in every cycle.
  std::sort(ended.begin(), ended.end(), [](const EndedPod& a, const EndedPod& b) {
    return std::pair(b.ended, std::string_view(a.name)) < std::pair(a.ended, std::string_view(b.name));
  });
  std::vector<Removal> result;
  std::int64_t newer[2] = {0, 0};
  for (const auto& pod : ended) {
    auto reason = why(pod, policy, newer[pod.failed]++, now);
    if (!reason.empty()) result.push_back({pod.name, std::move(reason)});
  }
  for (const auto& pod : stuck)
    if (const auto age = now - pod.since; age > 2 * policy.settings.pull_limit)
      result.push_back({pod.name, fmt::format("no image for {} s", age.count())});
  // Those that take room, then the oldest, go first where not all can go.
  std::reverse(result.begin(), result.end());
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(policy.removals_per_cycle, 0));
  if (result.size() > most) result.resize(most);
  return result;
}

}  // namespace glidepod::provisioner
