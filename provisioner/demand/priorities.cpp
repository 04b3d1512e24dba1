#include "provisioner/demand/priorities.hpp"

#include <algorithm>

namespace glidepod::provisioner {

using condor::Ad;
using condor::Value;

namespace {

// Nobody's real priority is better than this (the accountant's MinPriority).
constexpr double k_best_real = 0.5;

std::optional<double> number(const Ad& ad, std::string_view name) {
  const auto value = ad.evaluate(name);
  if (value.is(Value::Type::integer)) return static_cast<double>(value.integer);
  if (value.is(Value::Type::real)) return value.real;
  return std::nullopt;
}

}  // namespace

double Priorities::of_owner(const std::string& owner) const {
  const auto found = of.find(owner);
  return found == of.end() ? newcomer : found->second;
}

void PrioritiesReader::read(const Ad& ad) {
  const auto name = ad.text("Name");
  const auto at = name.rfind('@');
  // Groups have no '@' in their names, submitters always do (Accountant::GetAssignedGroup).
  if (at == std::string::npos) return read_group(ad, name);
  const auto priority = number(ad, "Priority");
  if (!priority || !(*priority > 0)) return;
  auto owner = name.substr(0, at);
  const auto group = ad.text("AccountingGroup");
  if (owner.starts_with(group + ".")) owner.erase(0, group.size() + 1);
  // Of an owner with several names, such as of two access points or groups, the best counts.
  const auto [known, fresh] = result_.of.try_emplace(owner, *priority);
  known->second = std::min(known->second, *priority);
  const bool same = fresh || result_.group_of[owner] == group;
  result_.group_of[owner] = same ? group : "";
  if (const auto factor = number(ad, "PriorityFactor"); factor && *factor > 0) ++factors_[*factor];
}

void PrioritiesReader::read_group(const Ad& ad, const std::string& name) {
  const auto quota = number(ad, "ConfigQuota"), used = number(ad, "WeightedResourcesUsed");
  // Up to 1 it may be a share of the pool, which grows with the pods that are made.
  if (name.empty() || name == "<none>" || ad.text("SurplusPolicy") != "no" || !quota || *quota <= 1) return;
  result_.quota_left[name] = std::max(*quota - used.value_or(0), 0.0);
}

Priorities PrioritiesReader::result() const {
  auto result = result_;
  if (result.of.empty()) {
    result.unknown = "the collector has no accounting ads of owners";
    return result;
  }
  const auto usual =
      std::ranges::max_element(factors_, [](const auto& a, const auto& b) { return a.second < b.second; });
  result.newcomer = k_best_real * (usual == factors_.end() ? 1 : usual->first);
  std::erase_if(result.group_of,
                [&result](const auto& entry) { return !result.quota_left.contains(entry.second); });
  return result;
}

}  // namespace glidepod::provisioner
