#include "provisioner/service/running.hpp"

#include <algorithm>
#include <map>

#include "lib/base/json.hpp"
#include "lib/base/time.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

void put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

Json job_json(const Slot& slot, const OwnerNaming& naming) {
  const SlotJob& job = slot.job;
  Json result = {{"slot", slot.name.str()},
                 {"job", job.id.str()},
                 {"owner", naming ? naming(slot.owner) : slot.owner.str()}};
  put(result, "state", job.state);
  put(result, "container", job.container);
  put(result, "image", job.image);
  put(result, "digest", job.digest);
  put(result, "how", job.how);
  put(result, "waits_for", job.waits_for);
  if (job.since != Time{}) result["since"] = job.since.time_since_epoch().count();
  if (job.bind_s) result["bind_s"] = *job.bind_s;
  return result;
}

// Of a pilot that runs, and is in no pool.
std::string joins(const std::string& pod) {
  return fmt::format("its pilot to join the pool (why not: kubectl logs {} --container pilot)",
                     without_place(pod));
}

using SlotsOfPods = std::map<std::string_view, std::vector<const Slot*>>;

// What is told of a pod first: its own state, or that of its slots.
PodState shown_state(const Pod& pod, const std::vector<const Slot*>* slots) {
  if (!slots) return pod.state;
  const auto claimed = [](const Slot* slot) { return slot->claimed; };
  return std::ranges::any_of(*slots, claimed) ? PodState::claimed : PodState::unmatched;
}

const char* shown_job_state(const Slot& slot) {
  return slot.job.state.empty() ? "claimed" : slot.job.state.c_str();
}

// The worst of a pod, so that this is left out last.
Concern shown_concern(const Pod& pod, const std::vector<const Slot*>* slots) {
  const auto state = shown_state(pod, slots);
  auto worst = state == PodState::claimed ? Concern::runs : concern_of(to_string(state));
  if (!slots) return worst;
  for (const auto* slot : *slots) {
    if (!slot->trouble.empty()) worst = std::min(worst, Concern::waits);
    if (slot->claimed)
      worst = std::min(worst, slot->job.state.empty() ? Concern::runs : concern_of(slot->job.state));
  }
  return worst;
}

Json pod_json(const Pod& pod, const std::vector<const Slot*>* slots, const OwnerNaming& naming) {
  Json entry = {{"pod", pod.name.str()}, {"jobs", Json::array()}};
  put(entry, "node", pod.node);
  put(entry, "place", std::string(place_of(pod.name)));
  const auto state = shown_state(pod, slots);
  entry["state"] = to_string(state);
  if (!slots) {
    entry["since"] = pod.since.time_since_epoch().count();
    put(entry, "waits_for",
        state == PodState::unregistered && pod.message.empty() ? joins(pod.name) : pod.message.str());
    return entry;
  }
  if (pod.state == PodState::unknown) put(entry, "waits_for", pod.message);
  for (const auto* slot : *slots) {
    put(entry, "containers", slot->containers);
    put(entry, "waits_for", slot->trouble);
    if (slot->claimed) entry["jobs"].push_back(job_json(*slot, naming));
  }
  if (!pod.drained.empty())
    entry["waits_for"] = "the end of its last job, as it is drained: " + pod.drained.str();
  return entry;
}

}  // namespace

Concern concern_of(std::string_view state) {
  if (state == "running") return Concern::runs;
  if (state == "unmatched") return Concern::none;
  for (const auto* bad : {"pull error", "unknown", "broken", "absent"})
    if (state == bad) return Concern::trouble;
  return Concern::waits;
}

Json pods_json(const std::vector<Pod>& pods, const std::vector<Slot>& slots, const OwnerNaming& naming,
               std::size_t most, Json* left_out) {
  return json_from('[' + pods_text(pods, slots, naming, most, left_out) + ']');
}

std::string pods_text(const std::vector<Pod>& pods, const std::vector<Slot>& slots, const OwnerNaming& naming,
                      std::size_t most, Json* left_out) {
  SlotsOfPods by_pod;
  for (const auto& slot : slots) by_pod[slot.pod].push_back(&slot);
  std::vector<const Pod*> shown;
  for (const auto& pod : pods)
    if (pod.state != PodState::succeeded && pod.state != PodState::failed) shown.push_back(&pod);
  const auto slots_of = [&by_pod](const Pod& pod) {
    const auto found = by_pod.find(pod.name);
    return found == by_pod.end() ? nullptr : &found->second;
  };
  auto result = fitting(
      shown.size(), most, [&](std::size_t at) { return pod_json(*shown[at], slots_of(*shown[at]), naming); },
      [&](std::size_t at) {
        return static_cast<std::int64_t>(shown_concern(*shown[at], slots_of(*shown[at])));
      });
  if (left_out && !result.left_out.empty()) {
    std::map<std::string, std::int64_t> pod_states, job_states;
    for (const auto at : result.left_out) {
      const auto* of_pod = slots_of(*shown[at]);
      ++pod_states[std::string(to_string(shown_state(*shown[at], of_pod)))];
      if (!of_pod) continue;
      for (const auto* slot : *of_pod)
        if (slot->claimed) ++job_states[shown_job_state(*slot)];
    }
    (*left_out)["pods"] = pod_states;
    (*left_out)["jobs"] = job_states;
  }
  return std::move(result.entries);
}

}  // namespace glidepod::provisioner
