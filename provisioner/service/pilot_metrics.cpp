#include "provisioner/service/pilot_metrics.hpp"

#include <algorithm>

#include "provisioner/service/metric_text.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::array<PodState, 9> k_live_states = {
    PodState::gated,      PodState::unschedulable, PodState::pulling,
    PodState::pull_error, PodState::starting,      PodState::unregistered,
    PodState::unmatched,  PodState::claimed,       PodState::unknown};

std::uint64_t binds_of(const BindCounts& binds) {
  std::uint64_t sum = 0;
  for (const auto count : binds.counts) sum += count;
  return sum;
}

// What is more than before; an agent that started again counts from nothing.
void add_difference(BindCounts& total, const BindCounts& now, const BindCounts& last) {
  bool again = false;
  for (std::size_t i = 0; i < now.counts.size(); ++i) again = again || now.counts[i] < last.counts[i];
  const BindCounts none;
  const auto& before = again ? none : last;
  for (std::size_t i = 0; i < now.counts.size(); ++i) total.counts[i] += now.counts[i] - before.counts[i];
  for (std::size_t i = 0; i < now.within.size(); ++i)
    total.within[i] += now.within[i] - std::min(now.within[i], before.within[i]);
  total.seconds += std::max(now.seconds - before.seconds, 0.0);
}

bool has_ended(const Pod& pod) {
  return pod.state == PodState::succeeded || pod.state == PodState::failed;
}

}  // namespace

void PilotMetrics::forget() {
  last_.clear();
  looked_ = false;
}

void PilotMetrics::saw(const Observation& seen) {
  // Of several ads of a pod the one that has counted most: its own slot's.
  std::map<std::string_view, const BindCounts*> told;
  for (const auto& slot : seen.slots) {
    if (!slot.binds) continue;
    auto& best = told[slot.pod];
    if (best == nullptr || binds_of(*slot.binds) > binds_of(*best)) best = &*slot.binds;
  }
  std::map<std::string, BindCounts> last;
  for (const auto& pod : seen.pods) {
    if (has_ended(pod)) continue;
    const auto before = last_.find(pod.name);
    const auto now = told.find(pod.name);
    if (now == told.end()) {
      // Its ad is missing, or has not come yet.
      if (before != last_.end()) last.insert(*before);
      continue;
    }
    // Another instance may have counted what there was before the first look.
    if (before != last_.end() || looked_)
      add_difference(binds_, *now->second, before == last_.end() ? BindCounts{} : before->second);
    last[pod.name] = *now->second;
  }
  last_ = std::move(last);
  if (looked_ && seen.at > last_look_)
    for (const auto& [group, supply] : seen.supply.groups)
      for (const auto& [state, count] : supply.states)
        pod_seconds_[to_string(state)] +=
            static_cast<double>(count) * static_cast<double>((seen.at - last_look_).count());
  looked_ = true;
  last_look_ = seen.at;
}

std::string PilotMetrics::text() const {
  std::string text;
  metric_head(text, "glidepod_binds_total", "counter",
              "Jobs by how they came by a payload container, and failures by whose fault; one that lost its "
              "container later is in both. As pilots count; what one does after its last ad is missing");
  std::uint64_t bound = 0;
  for (std::size_t i = 0; i < binds_.counts.size(); ++i) {
    const bool good = i < BindCounts::k_bound;
    metric_sample(text, "glidepod_binds_total",
                  fmt::format("how=\"{}\",result=\"{}\"", good ? BindCounts::k_names[i] : "none",
                              good ? "bound" : BindCounts::k_names[i]),
                  binds_.counts[i]);
    if (good) bound += binds_.counts[i];
  }
  metric_head(text, "glidepod_bind_duration_seconds", "histogram",
              "How long jobs that got a payload container waited for it, image included");
  metric_histogram(text, "glidepod_bind_duration_seconds", {}, BindCounts::k_seconds, binds_.within, bound,
                   binds_.seconds);
  metric_head(
      text, "glidepod_pod_seconds_total", "counter",
      "Time of pods in each state; the state that a cycle sees counts for the time since the cycle before");
  for (const auto state : k_live_states) {
    const auto found = pod_seconds_.find(to_string(state));
    metric_sample(text, "glidepod_pod_seconds_total", fmt::format("state=\"{}\"", to_string(state)),
                  found == pod_seconds_.end() ? 0 : found->second);
  }
  return text;
}

}  // namespace glidepod::provisioner
