#include "provisioner/backends/likely_images.hpp"

#include <algorithm>
#include <cstdlib>

#include "lib/kube/pulls.hpp"

namespace glidepod::provisioner {

namespace {

constexpr int k_material = 250;  // per thousand

bool is_at_work(const Pod& pod) {
  return pod.state == PodState::unregistered && !pod.leaving && pod.spares > 0;
}

}  // namespace

std::string likely_text(const GroupDemand& demand) {
  std::vector<kube::LikelyImage> likely;
  for (const auto& [image, idle] : demand.images)
    if (const auto share = idle * 1000 / std::max(demand.idle, idle); share > 0)
      likely.push_back({image, static_cast<int>(share)});
  return kube::likely_text(likely);
}

bool differs(std::string_view told, std::string_view now) {
  std::map<std::string, int> shares;
  for (const auto& one : kube::read_likely(now)) shares[one.image] += one.share;
  for (const auto& one : kube::read_likely(told)) shares[one.image] -= one.share;
  int more = 0, less = 0;
  for (const auto& [image, share] : shares) (share > 0 ? more : less) += std::abs(share);
  return std::max(more, less) >= k_material;
}

std::map<std::string, std::string> to_tell(const std::vector<Pod>& pods,
                                           const std::map<Group, GroupDemand>& demand,
                                           const std::map<std::string, Time>& told, Time now) {
  std::map<std::string, std::string> result;
  for (const auto& pod : pods) {
    if (result.size() >= k_most_told) break;
    const auto group = demand.find(pod.group);
    if (!is_at_work(pod) || group == demand.end() || group->second.images.empty()) continue;
    if (const auto last = told.find(pod.name); last != told.end() && now < last->second + k_told_again)
      continue;
    auto text = likely_text(group->second);
    if (differs(pod.likely, text)) result[pod.name] = std::move(text);
  }
  return result;
}

}  // namespace glidepod::provisioner
