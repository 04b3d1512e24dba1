#include "provisioner/backends/pod_state.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "lib/kube/pod.hpp"
#include "lib/kube/pulls.hpp"
#include "lib/kube/quantity.hpp"
#include "lib/kube/wait_reason.hpp"
#include "provisioner/backends/pod_nodes.hpp"
#include "provisioner/backends/spare_containers.hpp"

namespace glidepod::provisioner {

namespace {

// After so many starts in one pod a pilot gets no more time for each.
constexpr std::int64_t k_crash_loop = 5;
constexpr Seconds k_least_left{600};  // of a pod's life, for another job

// The container that the provisioner's settings are about.
std::size_t pilot_index(const Json& containers) {
  for (std::size_t i = 0; i < containers.size(); ++i)
    if (text_view(containers[i], "name") == kube::k_pilot_container) return i;
  return 0;
}

bool is_pull_error(std::string_view reason) {
  const auto waiting = kube::wait_reason_of(reason);
  return waiting == kube::WaitReason::pull || waiting == kube::WaitReason::never;
}

// Jobs' images may be at fault there, and the agent sees to that.
bool is_payload(const Json& container) {
  return text_view(container, "name").starts_with("payload-");
}

// In a Pending pod with a node: what its containers wait for.
PodState waiting_state(const Json& status) {
  bool begun = false;
  for (const auto* lists : {"initContainerStatuses", "containerStatuses"})
    for (const auto& container : member(status, lists)) {
      const auto& state = member(container, "state");
      const auto reason = text_view(member(state, "waiting"), "reason");
      if (is_pull_error(reason) && !is_payload(container)) return PodState::pull_error;
      // An init container that runs, or anything that failed to start: the images are there.
      begun = begun || state.contains("running") || state.contains("terminated") ||
              (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing");
    }
  return begun ? PodState::starting : PodState::pulling;
}

// What payload containers were made with in place of the pilot's image.
std::vector<std::string> jobs_images(const Json& containers, const std::string& own) {
  std::vector<std::string> result;
  for (const auto& container : containers)
    if (const auto image = text_view(container, "image"); is_payload(container) && image != own)
      result.emplace_back(image);
  return result;
}

// The status of the pilot's container; null where there is none yet.
const Json& pilot_status(const Json& pod) {
  static const Json none;
  const auto& containers = member(member(pod, "spec"), "containers");
  const auto name = text_view(containers[pilot_index(containers)], "name");
  for (const auto& container : member(member(pod, "status"), "containerStatuses"))
    if (text_view(container, "name") == name) return container;
  return none;
}

bool crash_loops(const Json& pilot) {
  const auto& restarts = member(pilot, "restartCount");
  return restarts.is_number_integer() && restarts.get<std::int64_t>() >= k_crash_loop;
}

// Without a pilot no job comes, and none outlives it.
bool is_jobless(const Json& pilot) {
  const auto& state = member(pilot, "state");
  if (!member(state, "running").is_null()) return false;
  const bool ran =
      !member(state, "terminated").is_null() || !member(member(pilot, "lastState"), "terminated").is_null();
  return !ran || crash_loops(pilot);
}

// For good: what runs on beside it, or is waited for, has no job either.
bool has_ended(const Json& pod, const Json& pilot) {
  return text_view(member(pod, "spec"), "restartPolicy") == "Never" &&
         !member(member(pilot, "state"), "terminated").is_null();
}

// Where a service mesh runs on beside it, a pilot that has ended well has the kubelet end its pod, as Failed.
bool ended_well(const Json& status, const Json& pilot) {
  const auto& code = member(member(member(pilot, "state"), "terminated"), "exitCode");
  return text_view(status, "reason") == "DeadlineExceeded" && code.is_number_integer() &&
         code.get<std::int64_t>() == 0;
}

// Whose doing it is that a pod has ended.
PodEnd end_of(const Json& pod, const Json& pilot) {
  const auto &metadata = member(pod, "metadata"), &status = member(pod, "status");
  // Drained, preempted or deleted by hand; what ends by itself has no such time while it is looked at first.
  if (!member(metadata, "deletionTimestamp").is_null()) return PodEnd::taken;
  for (const auto& condition : member(status, "conditions"))
    if (text_view(condition, "type") == "DisruptionTarget" && text_view(condition, "status") == "True")
      return PodEnd::taken;
  const auto reason = text_view(status, "reason");
  static constexpr std::string_view taken[] = {"Evicted",  "Preempting",   "NodeLost",  "NodeShutdown",
                                               "Shutdown", "NodeAffinity", "Terminated"};
  // OutOfcpu and its like: the scheduler and the kubelet have counted differently for a moment.
  if (reason.starts_with("OutOf") || std::find(std::begin(taken), std::end(taken), reason) != std::end(taken))
    return PodEnd::taken;
  const bool lost =
      text_view(member(member(pilot, "state"), "terminated"), "reason") == "ContainerStatusUnknown";
  return lost || reason == "UnexpectedAdmissionError" ? PodEnd::refused : PodEnd::own;
}

Time condition_time(const Json& status, std::string_view type) {
  for (const auto& condition : member(status, "conditions"))
    if (text_view(condition, "type") == type) return read_time(member(condition, "lastTransitionTime"));
  return {};
}

// When the last init container ended; the epoch where none has.
Time installed_time(const Json& status) {
  Time last{};
  for (const auto& container : member(status, "initContainerStatuses"))
    last = std::max(last, read_time(member(member(member(container, "state"), "terminated"), "finishedAt")));
  return last;
}

// How long jobs are is not known. A pod made for a day is no room for a long one in its last tenth.
Time near_end_of(const Json& spec, Time started) {
  const auto& deadline = member(spec, "activeDeadlineSeconds");
  if (!deadline.is_number_integer() || started == Time{}) return {};
  // A deadline may be any; this one is past any pod's life.
  const Seconds whole(std::clamp<std::int64_t>(deadline.get<std::int64_t>(), 0, 1'000'000'000));
  return started + whole - std::min(std::max(whole / 10, k_least_left), whole);
}

// Held back before the scheduler looks for a node: it says nothing of the nodes.
bool is_gated(const Json& status) {
  return std::ranges::any_of(member(status, "conditions"), [](const Json& condition) {
    return text_view(condition, "type") == "PodScheduled" &&
           text_view(condition, "reason") == "SchedulingGated";
  });
}

bool scheduled(const Json& pod) {
  return !text_view(member(pod, "spec"), "nodeName").empty();
}

Time end_time(const Json& status, Time otherwise) {
  Time last{};
  for (const auto& container : member(status, "containerStatuses"))
    last = std::max(last, read_time(member(member(member(container, "state"), "terminated"), "finishedAt")));
  return last == Time{} ? otherwise : last;
}

// What its scheduler, or the first container that waits for more than its turn, says of the pod's waiting.
std::string words_of(const Json& status) {
  for (const auto& condition : member(status, "conditions"))
    if (text_view(condition, "type") == "PodScheduled" && text_view(condition, "status") == "False")
      return one_line(text_view(condition, "message"), 500);
  for (const auto* lists : {"initContainerStatuses", "containerStatuses"})
    for (const auto& container : member(status, lists)) {
      const auto& waiting = member(member(container, "state"), "waiting");
      const auto message = text_view(waiting, "message");
      if (!message.empty())
        return one_line(fmt::format("{}: {}", text_view(waiting, "reason"), message), 500);
    }
  return {};
}

// The same of a pod that is on its way out, or lost.
std::string words_of_end(const Json& metadata) {
  const auto until = text_view(metadata, "deletionTimestamp");
  if (until.empty()) return "its node does not answer";
  auto result = fmt::format("asked to end, by {} at the latest", until);
  for (const auto& finalizer : member(metadata, "finalizers"))
    if (finalizer.is_string()) result += "; kept by the finalizer " + finalizer.get<std::string>();
  return one_line(result, 500);
}

void place_running(Pod& result, const Json& pilot) {
  const auto& state = member(pilot, "state");
  result.state = is_pull_error(text_view(member(state, "waiting"), "reason")) ? PodState::pull_error
                                                                              : PodState::starting;
  if (!state.contains("running")) return;
  result.state = PodState::unregistered;
  if (!crash_loops(pilot)) result.since = read_time(member(member(state, "running"), "startedAt"));
}

std::int64_t quantity(const Json& values, const char* name, std::int64_t unit, std::int64_t missing) {
  const auto& value = member(values, name);
  if (value.is_null()) return missing;
  const auto milli = kube::parse_milli(value.is_string() ? value.get<std::string>() : json_text(value));
  return milli ? milli.value() / unit : missing;
}

// A quota names requests with and without a prefix.
std::int64_t limit(const Json& values, const char* name, const char* other, std::int64_t unit,
                   std::int64_t missing) {
  return quantity(values, name, unit, quantity(values, other, unit, missing));
}

Resources quota_of(const Json& values, std::int64_t missing, const std::set<std::string>& devices) {
  std::map<std::string, std::int64_t> others;
  for (const auto& name : devices)
    others[name] = quantity(values, ("requests." + name).c_str(), 1000, missing);
  return {limit(values, "requests.cpu", "cpu", 1, missing),
          limit(values, "requests.memory", "memory", 1000, missing),
          quantity(values, "requests.ephemeral-storage", 1000, missing),
          quantity(values, "requests.nvidia.com/gpu", 1000, missing),
          limit(values, "pods", "count/pods", 1000, missing),
          quantity(values, "limits.cpu", 1, missing),
          quantity(values, "limits.memory", 1000, missing),
          std::move(others)};
}

// Whether a quota's rule on priority classes is about all of these; an empty one is what the cluster gives.
bool counts_classes(const Json& rule, const std::set<std::string>& classes) {
  const auto has = text_view(rule, "operator");
  return std::ranges::all_of(classes, [&](const std::string& name) {
    if (name.empty() || has == "DoesNotExist") return false;
    const auto& values = member(rule, "values");
    const bool listed = std::ranges::find(values, Json(name)) != values.end();
    return has == "Exists" || (has == "In" && listed) || (has == "NotIn" && !listed);
  });
}

// Pilots request CPUs and memory, and so are none of BestEffort.
bool counts_us(const Json& spec, bool terminating, const std::set<std::string>& classes) {
  const auto scope_counts = [&](const Json& scope) {
    return scope == "NotBestEffort" || scope == (terminating ? "Terminating" : "NotTerminating") ||
           (scope == "PriorityClass" && counts_classes({{"operator", "Exists"}}, classes));
  };
  return std::ranges::all_of(member(spec, "scopes"), scope_counts) &&
         std::ranges::all_of(
             member(member(spec, "scopeSelector"), "matchExpressions"), [&](const Json& rule) {
               const auto& scope = member(rule, "scopeName");
               return scope == "PriorityClass" ? counts_classes(rule, classes) : scope_counts(scope);
             });
}

Resources tightest(const Resources& a, const Resources& b) {
  auto devices = a.devices;  // both have the same
  for (auto& [name, number] : devices) number = std::min(number, b.devices.at(name));
  return {std::min(a.cpu_milli, b.cpu_milli),
          std::min(a.memory_bytes, b.memory_bytes),
          std::min(a.disk_bytes, b.disk_bytes),
          std::min(a.gpus, b.gpus),
          std::min(a.pods, b.pods),
          std::min(a.limit_cpu_milli, b.limit_cpu_milli),
          std::min(a.limit_memory_bytes, b.limit_memory_bytes),
          std::move(devices)};
}

}  // namespace

Time read_time(const Json& value) {
  if (!value.is_string()) return {};
  return std::chrono::floor<Seconds>(parse_time(value.get_ref<const std::string&>()).value_or(WallTime{}));
}

Result<Pod> read_pod(const Json& pod) {
  Pod result;
  const auto &metadata = member(pod, "metadata"), &status = member(pod, "status");
  result.name = text_view(metadata, "name");
  if (result.name.empty()) return error("a pod without a name");
  result.group = TRY(group_of_pod(pod).in(result.name));
  const auto& containers = member(member(pod, "spec"), "containers");
  if (!containers.is_array() || containers.empty()) return error("{}: no containers", result.name);
  result.image = text_view(containers[pilot_index(containers)], "image");

  result.node = text_view(member(pod, "spec"), "nodeName");
  result.avoids = avoided_by(pod);
  result.made_as = text_view(member(metadata, "annotations"), k_made_as);
  result.drained = one_line(text_view(member(metadata, "annotations"), k_drained), k_longest_drained);
  result.told_drained = !result.drained.empty();
  result.spares = spares_of(containers[pilot_index(containers)]);
  if (result.spares > 0) result.likely = text_view(member(metadata, "annotations"), kube::k_likely_images);
  result.since = read_time(member(metadata, "creationTimestamp"));
  result.near_end = near_end_of(member(pod, "spec"), read_time(member(status, "startTime")));
  result.leaving = metadata.contains("deletionTimestamp");
  result.message = words_of(status);
  const auto& pilot = pilot_status(pod);
  const auto phase = text_view(status, "phase");
  if (phase == "Succeeded" || phase == "Failed") {
    const bool failed = phase == "Failed" && !ended_well(status, pilot);
    result.state = failed ? PodState::failed : PodState::succeeded;
    result.since = end_time(status, result.since);
    result.end = end_of(pod, pilot);
  } else if (metadata.contains("deletionTimestamp") || phase == "Unknown") {
    result.state = PodState::unknown;  // on its way out: it takes no more jobs, but room
    result.message = words_of_end(metadata);
  } else if (phase == "Running" || !member(member(pilot, "state"), "running").is_null()) {
    // Pending, too, is a pod in which anything has yet to start.
    place_running(result, pilot);
    result.jobless = !pilot.is_null() && (is_jobless(pilot) || has_ended(pod, pilot));
  } else if (scheduled(pod)) {
    result.state = waiting_state(status);
    result.jobless = is_jobless(pilot);
    result.since = std::max(result.since, condition_time(status, "PodScheduled"));
    // The pilot's image is there, and whether the pilot runs is told when all of them have started, or
    // cannot.
    if (result.state == PodState::starting) result.awaits = jobs_images(containers, result.image);
    if (!result.awaits.empty()) result.since = std::max(result.since, installed_time(status));
  } else {
    result.state = is_gated(status) ? PodState::gated : PodState::unschedulable;
    result.jobless = true;
  }
  return result;
}

std::vector<Resources> read_nodes(const Json& list, bool list_gpus, const std::set<std::string>& devices) {
  using Devices = std::map<std::string, std::int64_t>;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, Devices>> sizes;
  for (const auto& node : member(list, "items")) {
    const auto& room = member(member(node, "status"), "allocatable");
    Devices others;
    for (const auto& name : devices)
      if (list_gpus) others[name] = quantity(room, name.c_str(), 1000, 0);
    sizes.emplace(quantity(room, "cpu", 1, 0), quantity(room, "memory", 1000, 0),
                  quantity(room, "ephemeral-storage", 1000, k_unlimited),
                  list_gpus ? quantity(room, "nvidia.com/gpu", 1000, 0) : k_unlimited,
                  quantity(room, "pods", 1000, k_unlimited), std::move(others));
  }
  std::vector<Resources> result;
  result.reserve(sizes.size());
  for (const auto& [cpu, memory, disk, gpus, pods, others] : sizes)
    result.push_back({cpu, memory, disk, gpus, pods, k_unlimited, k_unlimited, others});
  return result;
}

std::optional<Quota> read_quotas(const Json& list, bool terminating, const std::set<std::string>& classes,
                                 const std::set<std::string>& devices) {
  std::optional<Quota> result;
  for (const auto& quota : member(list, "items")) {
    // One with scopes is about some pods only.
    if (!counts_us(member(quota, "spec"), terminating, classes)) continue;
    const auto hard = quota_of(member(member(quota, "status"), "hard"), k_unlimited, devices);
    const auto left = hard.minus(quota_of(member(member(quota, "status"), "used"), 0, devices));
    result = result ? Quota{tightest(result->hard, hard), tightest(result->left, left)} : Quota{hard, left};
  }
  return result;
}

}  // namespace glidepod::provisioner
