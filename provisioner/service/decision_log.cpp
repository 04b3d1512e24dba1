#include "provisioner/service/decision_log.hpp"

#include <algorithm>

#include "lib/base/log.hpp"
#include "lib/base/text.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_most = 1000;  // decisions of a plan; its status has the others

}  // namespace

void DecisionLog::decided(const Plan& plan) {
  if (plan.blind) return spdlog::warn("event=blind why={}", glidepod::quoted(*plan.blind));
  std::size_t told = 0;
  for (const auto& d : plan.decisions) {
    const bool quiet = d.verdict == Decision::Verdict::enough || d.verdict == Decision::Verdict::no_demand;
    const auto level = quiet ? spdlog::level::debug : spdlog::level::info;
    if (!spdlog::should_log(level) || told++ >= k_most) continue;
    spdlog::log(
        level,
        "event=decision group={} verdict={} submit={} idle={} waiting={} unmatched={} claimed={} broken={} "
        "reason={}",
        glidepod::quoted(d.group.name()), glidepod::quoted(to_string(d.verdict)), d.submit, d.demand.idle,
        d.supply.waiting, d.supply.unmatched, d.supply.claimed, d.supply.broken,
        glidepod::quoted(d.reason()));
  }
  if (told > k_most) spdlog::info("event=decisions more={}", told - k_most);
  if (plan.equal_shares && plan.equal_shares != equal_shares_)
    spdlog::warn("event=equal_shares why={}", glidepod::quoted(*plan.equal_shares));
  equal_shares_ = plan.equal_shares;
  const auto& nodes = plan.history.nodes;
  for (const auto& node : plan.avoid) {
    const auto& memory = nodes.at(node);
    const auto known = avoided_.find(node);
    if (known == avoided_.end() || known->second != memory.since)
      spdlog::warn("event=node_avoided node={} failed={} pause_s={}", glidepod::quoted(node), memory.failed,
                   memory.pause.count());
  }
  for (const auto& entry : avoided_)
    if (std::ranges::find(plan.avoid, entry.first) == plan.avoid.end())
      spdlog::info("event=node_tried_again node={}", glidepod::quoted(entry.first));
  for (const auto& [place, why] : plan.unseen)
    if (!unseen_.contains(place))
      spdlog::warn("event=place_lost place={} why={}", place, glidepod::quoted(why));
  for (const auto& entry : unseen_)
    if (!plan.unseen.contains(entry.first)) spdlog::info("event=place_back place={}", entry.first);
  unseen_ = plan.unseen;
  avoided_.clear();
  for (const auto& node : plan.avoid) avoided_[node] = nodes.at(node).since;
}

}  // namespace glidepod::provisioner
