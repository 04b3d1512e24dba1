#include "provisioner/decide/step.hpp"

#include <fmt/format.h>

namespace glidepod::provisioner {

std::string text_there(const Step& step) {
  const auto [a, b, c, d] = step.numbers;
  const auto& words = step.words;
  const bool of_place = !step.place.empty();
  switch (step.rule) {
    case Rule::law:
      return fmt::format("{} idle jobs ask for {} waiting pods", a, b);
    case Rule::no_jobs:
      return "no idle jobs";
    case Rule::waste:
      return fmt::format("{} pilots wasted, {} used: {} -> {}", a, b, c, d);
    case Rule::no_node:
      return of_place ? fmt::format("no node for {} s", a)
                      : fmt::format("no node for {} s: {} -> {}", a, b, c);
    case Rule::waiting:
      return fmt::format("{} wait already", a);
    case Rule::without_node:
      return fmt::format("{} pods without a node in {} count no more", a, words);
    case Rule::free_room:
      return fmt::format("{} of {} idle jobs fit into running pods", a, b);
    case Rule::free_room_overdue:
      return fmt::format(
          "{} of {} idle jobs seem to fit into running pods, but "
          "have waited for {} s: all count",
          a, b, c);
    case Rule::negotiation:
      return "negotiation: no cycle has seen the pods offered for these jobs: "
             "nothing is decided";
    case Rule::first_pilot:
      return fmt::format("offers: no pilot has joined whose ad could be offered: {} -> {}", a, b);
    case Rule::negotiator:
      return fmt::format("negotiator: would use {} of {} pods offered{}: {} -> {}", a, b, words, c, d);
    case Rule::node_size:
      return "larger than every node";
    case Rule::quota_size:
      return "larger than the quota";
    case Rule::not_made:
      return words;
    case Rule::max_pods_per_owner:
      return fmt::format("max_pods_per_owner {}: {} of {} idle jobs count", a, b, c);
    case Rule::group_quota:
      return fmt::format("group_quota {}: {} of {} idle jobs count", words, b, c);
    case Rule::max_submit_pods_per_cluster:
      return fmt::format("max_submit_pods_per_cluster {}: has {}", a, b);
    case Rule::max_pods_per_cluster:
      return fmt::format("max_pods_per_cluster {}: {} wait", a, b);
    case Rule::breaker_opens:
      return fmt::format("breaker opens: {} pilots failed, {} registered", a, b);
    case Rule::breaker_waits:
      return fmt::format("breaker open for {} min: a waiting pod tries", a);
    case Rule::breaker_pauses:
      return fmt::format("breaker open for {} min: next try in {} s", a, b);
    case Rule::breaker_tries:
      return fmt::format("breaker open for {} min: one pod tries", a);
    case Rule::refused:
    case Rule::quota_refused:
      return a > 0 ? fmt::format("{}: {}: asked again in {} s", key(step.rule), words, a)
                   : fmt::format("{}: {}: one pod tries", key(step.rule), words);
    case Rule::max_pods:
      if (of_place) return fmt::format("max_pods {}: has {}", a, b);
      break;
    case Rule::quota:
      if (of_place) return "quota";
      break;
    case Rule::ramp_up_per_group:
    case Rule::max_idle_per_group:
    case Rule::max_running_per_group:
    case Rule::max_pods_per_group:
    case Rule::ramp_up:
    case Rule::max_idle:
    case Rule::max_running:
    case Rule::max_cores:
    case Rule::places:
      break;
    case Rule::priorities:
      return fmt::format("priorities: the best of its owners' is {:.1f}, of all {:.1f}",
                         static_cast<double>(a) / 10, static_cast<double>(b) / 10);
    case Rule::avoids:
      return "avoids " + words;
    case Rule::placed:
      return "pods: " + words;
    case Rule::drained:
      return fmt::format("drained for {} s: {}", a, words);
    case Rule::drained_nodes:
      return "keeps off drained nodes " + words;
    case Rule::unseen:
      return fmt::format("not seen for {} s", a);
    case Rule::waits_for_unseen:
      return fmt::format("waits for {}, which nobody has seen yet", words);
  }
  return fmt::format("{}: {} -> {}", key(step.rule), a, b);
}

std::string text(const Step& step) {
  return step.place.empty() ? text_there(step) : fmt::format("{}: {}", step.place, text_there(step));
}

std::string_view key(Rule rule) {
  switch (rule) {
    case Rule::law:
      return "law";
    case Rule::no_jobs:
      return "no_jobs";
    case Rule::waste:
      return "waste";
    case Rule::no_node:
      return "no_node";
    case Rule::waiting:
      return "waiting";
    case Rule::without_node:
      return "without_node";
    case Rule::free_room:
      return "free_room";
    case Rule::free_room_overdue:
      return "free_room_overdue";
    case Rule::negotiation:
      return "negotiation";
    case Rule::first_pilot:
      return "first_pilot";
    case Rule::negotiator:
      return "negotiator";
    case Rule::node_size:
      return "node_size";
    case Rule::quota_size:
      return "quota_size";
    case Rule::not_made:
      return "not_made";
    case Rule::max_pods_per_owner:
      return "max_pods_per_owner";
    case Rule::group_quota:
      return "group_quota";
    case Rule::max_submit_pods_per_cluster:
      return "max_submit_pods_per_cluster";
    case Rule::max_pods_per_cluster:
      return "max_pods_per_cluster";
    case Rule::breaker_opens:
      return "breaker_opens";
    case Rule::breaker_waits:
      return "breaker_waits";
    case Rule::breaker_pauses:
      return "breaker_pauses";
    case Rule::breaker_tries:
      return "breaker_tries";
    case Rule::refused:
      return "refused";
    case Rule::quota_refused:
      return "quota_refused";
    case Rule::ramp_up_per_group:
      return "ramp_up_per_group";
    case Rule::max_idle_per_group:
      return "max_idle_per_group";
    case Rule::max_running_per_group:
      return "max_running_per_group";
    case Rule::max_pods_per_group:
      return "max_pods_per_group";
    case Rule::ramp_up:
      return "ramp_up";
    case Rule::max_idle:
      return "max_idle";
    case Rule::max_running:
      return "max_running";
    case Rule::max_pods:
      return "max_pods";
    case Rule::max_cores:
      return "max_cores";
    case Rule::quota:
      return "quota";
    case Rule::places:
      return "places";
    case Rule::priorities:
      return "priorities";
    case Rule::avoids:
      return "avoids";
    case Rule::placed:
      return "placed";
    case Rule::drained:
      return "drained";
    case Rule::drained_nodes:
      return "drained_nodes";
    case Rule::unseen:
      return "unseen";
    case Rule::waits_for_unseen:
      return "waits_for_unseen";
  }
  return "?";
}

std::optional<Rule> rule_named(std::string_view name) {
  for (int number = 0; number <= static_cast<int>(Rule::waits_for_unseen); ++number)
    if (const auto rule = static_cast<Rule>(number); key(rule) == name) return rule;
  return std::nullopt;
}

}  // namespace glidepod::provisioner
