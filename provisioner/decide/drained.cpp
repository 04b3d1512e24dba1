#include "provisioner/decide/drained.hpp"

#include <algorithm>

#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {
constexpr std::size_t k_most_drainings = 1000;  // pods at a time: what is asked of an API has an end
}  // namespace

std::string_view to_string(Drained::Kind kind) {
  switch (kind) {
    case Drained::Kind::group:
      return "group";
    case Drained::Kind::node:
      return "node";
    case Drained::Kind::place:
      return "place";
  }
  return "?";
}

std::string_view to_string(Drained::Mode mode) {
  return mode == Drained::Mode::kill ? "kill" : "drain";
}

const Drained* drained(const DrainList& list, Drained::Kind kind, std::string_view name) {
  const auto found = std::ranges::find_if(
      list, [&](const Drained& entry) { return entry.kind == kind && entry.name == name; });
  return found == list.end() ? nullptr : &*found;
}

const Drained* drained_group(const DrainList& list, const Group& group) {
  return list.empty() ? nullptr : drained(list, Drained::Kind::group, group.hash());
}

Step step_of(const Drained& entry, Time now) {
  return {Rule::drained, {std::max<std::int64_t>((now - entry.since).count(), 0)}, entry.reason};
}

std::vector<std::string> drained_nodes(const DrainList& list) {
  std::vector<std::string> result;
  for (const auto& entry : list)
    if (entry.kind == Drained::Kind::node) result.push_back(entry.name);
  return result;
}

std::vector<const Drained*> entries_of(const std::vector<Pod>& pods, const DrainList& list) {
  std::vector<const Drained*> result(pods.size(), nullptr);
  if (list.empty()) return result;
  std::map<Group, const Drained*> groups;  // there are fewer of them, and a hash takes a while
  const auto of_group = [&](const Group& group) {
    const auto [entry, first] = groups.try_emplace(group, nullptr);
    if (first) entry->second = drained_group(list, group);
    return entry->second;
  };
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const auto& pod = pods[i];
    for (const auto* entry : {of_group(pod.group), drained(list, Drained::Kind::node, pod.node),
                              drained(list, Drained::Kind::place, place_of(pod.name))})
      if (entry && (!result[i] || entry->mode == Drained::Mode::kill)) result[i] = entry;
  }
  return result;
}

void mark_drained(std::vector<Pod>& pods, const DrainList& list) {
  const auto entries = entries_of(pods, list);
  for (std::size_t i = 0; i < pods.size(); ++i)
    if (entries[i] && pods[i].drained.empty()) pods[i].drained = entries[i]->reason;
}

std::vector<Draining> drainings(const std::vector<Pod>& pods,
                                const std::map<std::string, PlaceSupply>& places, const DrainList& list) {
  std::vector<Draining> result;
  const auto entries = entries_of(pods, list);
  for (std::size_t i = 0; i < pods.size() && result.size() < k_most_drainings; ++i) {
    const auto& pod = pods[i];
    const bool over = pod.state == PodState::succeeded || pod.state == PodState::failed || pod.leaving;
    if (!entries[i] || over || pod.jobless) continue;
    if (entries[i]->mode == Drained::Mode::drain && pod.told_drained) continue;
    const auto place = places.find(std::string(place_of(pod.name)));
    if (place != places.end() && !place->second.unseen.empty()) continue;
    result.push_back({std::string(pod.name), entries[i]->reason, entries[i]->mode});
  }
  return result;
}

}  // namespace glidepod::provisioner
