#include "provisioner/service/pod_events.hpp"

#include <algorithm>
#include <numeric>

#include "lib/base/text.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_longest = 900;  // of a message; the API takes 1,024 bytes

std::string bound_text(const Slot& slot, const OwnerNaming& naming) {
  const SlotJob& job = slot.job;
  return fmt::format("job {} of {} runs in {}: {}{}{} ({}, {:.1f} s)", job.id,
                     naming ? naming(slot.owner) : slot.owner.str(), job.container, job.image,
                     job.digest.empty() ? "" : " ", job.digest, job.how, *job.bind_s);
}

std::uint64_t sum(const BindCounts& binds) {
  return std::accumulate(binds.counts.begin(), binds.counts.end(), std::uint64_t{0});
}

}  // namespace

void PodEvents::tell(Memory& memory, PodEvent event, Time now) {
  auto& list = event.warning ? warnings_ : others_;
  const auto last = memory.told.find(event.reason);
  if (!looked_ || list.size() >= k_most || (last != memory.told.end() && now < last->second + k_pause))
    return;
  memory.told[event.reason] = now;
  event.message = harmless(one_line(event.message, k_longest));
  list.push_back(std::move(event));
}

void PodEvents::look_at_job(Memory& memory, const Slot& slot, const OwnerNaming& naming, Time now) {
  const SlotJob& job = slot.job;
  if (job.bind_s) {
    auto known = std::ranges::find(memory.jobs, slot.name, &std::pair<SharedText, SharedText>::first);
    if (known == memory.jobs.end()) known = memory.jobs.insert(known, {slot.name, {}});
    if (std::exchange(known->second, job.id) != job.id)
      tell(memory, {slot.pod, "Bound", bound_text(slot, naming)}, now);
  } else if (!job.waits_for.empty() && job.since != Time{} && now >= job.since + k_patience) {
    const auto text = fmt::format("job {} waits for {}: {}", job.id, job.image, job.waits_for);
    tell(memory, {slot.pod, "BindWaits", text, true}, now);
  }
}

void PodEvents::look_at_pilot(Memory& memory, const Slot& slot, Time now) {
  if (std::exchange(memory.trouble, slot.trouble) != slot.trouble && !slot.trouble.empty())
    tell(memory, {slot.pod, "GivenUp", "takes no more jobs: " + slot.trouble.str(), true}, now);
  if (!slot.held.empty() && std::exchange(memory.held, slot.held) != slot.held)
    tell(memory, {slot.pod, "OutOfResources", "put on hold: " + slot.held.str(), true}, now);
  // A dynamic slot may have an old copy; an agent that has started again counts anew.
  if (!slot.binds) return;
  const auto before = memory.binds ? *memory.binds : BindCounts{};
  const auto& counts = slot.binds->counts;
  constexpr auto user = BindCounts::k_bound, ours = user + 1, doubt = user + 2;
  if (sum(*slot.binds) <= sum(before)) return;
  const auto more = [&](std::size_t i) { return counts[i] - std::min(counts[i], before.counts[i]); };
  if (more(user) + more(ours) + more(doubt) > 0)
    tell(memory,
         {slot.pod, "BindFailed",
          fmt::format(
              "jobs that got no payload container: {} by a fault of their own, {} by one of the node or "
              "the cluster, {} by nobody knows whose; the pilot's log has each (event=bind_failed)",
              more(user), more(ours), more(doubt)),
          true},
         now);
  memory.binds = slot.binds;
}

void PodEvents::look_at_end(Memory& memory, const Pod& pod, const std::string& jobs, Time now) {
  if (std::exchange(memory.leaving, pod.leaving) != pod.leaving && !jobs.empty())
    tell(memory, {pod.name, "Draining", fmt::format("{}: vacates{}", pod.message, jobs)}, now);
}

std::vector<PodEvent> PodEvents::saw(const Observation& seen, const OwnerNaming& naming) {
  std::map<std::string, Memory> pods;
  for (const Pod& pod : seen.pods) pods[pod.name] = std::move(pods_[pod.name]);
  pods_ = std::move(pods);
  std::map<std::string_view, std::string> jobs;
  for (const Slot& slot : seen.slots) {
    const auto pod = pods_.find(slot.pod);
    if (pod == pods_.end()) continue;
    look_at_pilot(pod->second, slot, seen.at);
    if (!slot.claimed) continue;
    look_at_job(pod->second, slot, naming, seen.at);
    if (!slot.job.id.empty()) jobs[pod->first] += " " + slot.job.id.str();
  }
  for (const Pod& pod : seen.pods) look_at_end(pods_[pod.name], pod, jobs[pod.name], seen.at);
  looked_ = true;
  auto result = std::exchange(warnings_, {});
  for (auto& event : std::exchange(others_, {}))
    if (result.size() < k_most) result.push_back(std::move(event));
  return result;
}

}  // namespace glidepod::provisioner
