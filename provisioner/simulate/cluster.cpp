#include "provisioner/simulate/cluster.hpp"

#include <algorithm>
#include <limits>

namespace glidepod::provisioner {

Cluster::Cluster(const Scenario& scenario, const std::vector<Group>& groups, Random& random)
    : groups_(groups), pending_(groups.size()) {
  constexpr auto k_any = std::numeric_limits<std::int64_t>::max() / 2;
  const auto or_any = [](std::int64_t size) { return size == 0 ? k_any : size; };
  for (const auto& kind : scenario.nodes)
    for (std::int64_t i = 0; i < kind.count; ++i) {
      nodes_.push_back(
          {fmt::format("{}-{}", kind.name, i), or_any(kind.cpus), or_any(kind.memory_mb), or_any(kind.pods)});
      add_troubles(kind, nodes_.size() - 1, scenario.length, random);
    }
  for (const auto& place : scenario.places)
    nodes_.push_back({"", k_any, k_any, or_any(place.room), nodes_.size()});
  if (nodes_.empty()) nodes_.push_back({"", k_any, k_any, or_any(scenario.model.room)});
  std::ranges::stable_sort(troubles_, {}, &Trouble::from);
}

void Cluster::add_troubles(const NodeKind& kind, std::size_t node, Seconds length, Random& random) {
  for (const bool down : {true, false}) {
    const auto every = down ? kind.down_every : kind.breaks_every;
    if (every == Seconds(0)) continue;
    for (auto from = random.exponential(every); from < length; from += random.exponential(every)) {
      const auto until = from + random.around(down ? kind.down_for : kind.breaks_for);
      troubles_.push_back({from, until, node, down});
      from = until;
    }
  }
}

bool Cluster::breaks(std::size_t node, Seconds now) const {
  return std::ranges::any_of(troubles_, [&](const Trouble& trouble) {
    return !trouble.down && trouble.node == node && trouble.from <= now && now < trouble.until;
  });
}

bool Cluster::holds(const Node& node, const Group& group) {
  return !node.down && node.pods > 0 && node.cpus >= group.cpus && node.memory_mb >= group.memory_mb;
}

bool Cluster::suits(const Node& node, const Wish& wish) {
  return node.place == wish.place && !std::ranges::binary_search(*wish.avoids, node.name);
}

void Cluster::put(std::size_t pod, std::size_t group, std::size_t node) {
  auto& at = nodes_[node];
  at.cpus -= groups_[group].cpus;
  at.memory_mb -= groups_[group].memory_mb;
  --at.pods;
  at.on_it.insert(pod);
}

std::size_t Cluster::place(std::size_t pod, std::size_t group, const Wish& wish) {
  auto best = k_nowhere;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (holds(nodes_[i], groups_[group]) && suits(nodes_[i], wish) &&
        (best == k_nowhere || nodes_[i].cpus > nodes_[best].cpus))
      best = i;
  if (best == k_nowhere)
    pending_[group].push_back({pod, wish});
  else
    put(pod, group, best);
  return best;
}

std::vector<std::size_t> Cluster::fill(std::size_t node) {
  std::vector<std::size_t> result;
  while (true) {
    auto oldest = k_nowhere, of = k_nowhere;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!holds(nodes_[node], groups_[g])) continue;
      const auto first = std::ranges::find_if(
          pending_[g], [&](const Pending& pending) { return suits(nodes_[node], pending.wish); });
      if (first == pending_[g].end() || first->pod >= oldest) continue;
      oldest = first->pod;
      of = g;
    }
    if (oldest == k_nowhere) return result;
    withdraw(oldest, of);
    put(oldest, of, node);
    result.push_back(oldest);
  }
}

void Cluster::withdraw(std::size_t pod, std::size_t group) {
  std::erase_if(pending_[group], [pod](const Pending& pending) { return pending.pod == pod; });
}

void Cluster::leave(std::size_t pod, std::size_t group, std::size_t node) {
  auto& from = nodes_[node];
  from.cpus += groups_[group].cpus;
  from.memory_mb += groups_[group].memory_mb;
  ++from.pods;
  from.on_it.erase(pod);
}

std::set<std::size_t> Cluster::go_down(std::size_t node) {
  nodes_[node].down = true;
  return nodes_[node].on_it;
}

}  // namespace glidepod::provisioner
