#include "provisioner/decide/nodes.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "lib/base/found.hpp"
#include "provisioner/decide/breaker.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {

// How one pilot fared on a node in the end.
struct Fared {
  Time at;
  bool failed = false;
  const GroupSupply* group = nullptr;
};
using OnNode = std::map<std::string, Fared>;  // by pod

std::map<std::string, OnNode> all_fared(const Supply& supply) {
  std::map<std::string, OnNode> result;
  for (const auto& [key, group] : supply.groups) {
    for (const auto& good : group.registrations)
      result[good.node].try_emplace(good.pod, Fared{good.at, false, &group});
    // Of a pilot that failed, it says nothing any more that it had joined the pool.
    for (const auto* list : {&group.failures, &group.crashes, &group.refusals})
      for (const auto& bad : *list) result[bad.node].insert_or_assign(bad.pod, Fared{bad.at, true, &group});
  }
  result.erase(std::string());  // pods of some backends have no node
  return result;
}

bool works_elsewhere(const GroupSupply& group, const std::string& node,
                     const std::set<std::string>& avoided) {
  return std::any_of(group.at_work.begin(), group.at_work.end(), [&](const auto& other) {
    // That it works in another place says nothing of a node: it may be the place.
    return other != node && place_of(other) == place_of(node) && !avoided.contains(other);
  });
}

// The newest first; of equal times those that worked, so that doubt is in the node's favour.
std::vector<Fared> in_order(const OnNode& pilots) {
  std::vector<Fared> result;
  for (const auto& [pod, fared] : pilots) result.push_back(fared);
  std::ranges::sort(result, std::greater{},
                    [](const Fared& fared) { return std::pair(fared.at, !fared.failed); });
  return result;
}

}  // namespace

void judge_nodes(std::map<std::string, NodeMemory>& nodes, const Supply& supply,
                 const PolicySettings& settings, Time now) {
  // A node that was left alone for so long is as good as any other.
  std::erase_if(nodes, [&](const auto& entry) {
    return settings.node_failures == 0 || entry.second.until + settings.breaker_longest_pause < now;
  });
  if (settings.node_failures == 0) return;
  const auto list = avoided(nodes, now);
  std::set<std::string> pausing(list.begin(), list.end());
  for (const auto& [node, pilots] : all_fared(supply)) {
    const auto order = in_order(pilots);
    const auto* known = found_in(nodes, node);
    if (known && !order.front().failed && order.front().at > known->since) {
      nodes.erase(node);
      pausing.erase(node);
      continue;
    }
    std::int64_t failed = 0;
    for (const auto& fared : order) {
      if (!fared.failed || (known && fared.at <= known->until)) break;
      // A group that works nowhere shows nothing about a node.
      if (works_elsewhere(*fared.group, node, pausing)) ++failed;
    }
    const auto most = static_cast<std::size_t>(settings.nodes_avoided);
    if (failed < (known ? 1 : settings.node_failures) || pausing.size() >= most) continue;
    const auto pause = known ? next_pause(known->pause, settings) : settings.breaker_first_pause;
    auto& memory = nodes[node];
    memory.pause = pause;
    memory.since = now;
    memory.until = now + memory.pause;
    memory.failed += failed;
    pausing.insert(node);
  }
}

std::vector<std::string> avoided(const std::map<std::string, NodeMemory>& nodes, Time now) {
  std::vector<std::string> result;
  for (const auto& [node, memory] : nodes)
    if (now < memory.until) result.push_back(node);
  return result;
}

GroupSupply without_nodes(GroupSupply supply, const std::map<std::string, NodeMemory>& nodes, Time closed,
                          Time wasted_since) {
  const auto by_node = [&nodes](const Outcome& outcome) {
    const auto* memory = found_in(nodes, outcome.node);
    return memory && outcome.at < memory->until;
  };
  const auto after = [closed](const Outcome& outcome) { return outcome.at > closed; };
  // Crashes are remembered for breaker_window, which may be longer than waste_window.
  const auto crashed =
      std::ranges::count_if(supply.crashes, [&by_node, wasted_since](const Outcome& outcome) {
        return outcome.at >= wasted_since && by_node(outcome);
      });
  supply.wasted = std::max<std::int64_t>(supply.wasted - crashed, 0);
  std::set<std::string> failing;
  for (const auto& outcome : supply.failures)
    if (after(outcome)) failing.insert(outcome.node);
  const bool works = std::any_of(supply.registrations.begin(), supply.registrations.end(), after);
  if (failing.size() <= 1 || works) std::erase_if(supply.failures, by_node);
  return supply;
}

}  // namespace glidepod::provisioner
