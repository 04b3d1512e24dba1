#include "podhost/keep/pod_status.hpp"

#include <fmt/format.h>

#include "lib/kube/quantity.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;

Json terminated(const Run& run) {
  Json result = {{"exitCode", run.exit_code},
                 {"reason", run.reason},
                 {"startedAt", time_text(run.started)},
                 {"finishedAt", time_text(run.finished)}};
  if (!run.id.empty()) result["containerID"] = "podman://" + run.id;
  if (!run.message.empty()) result["message"] = run.message;
  return {{"terminated", std::move(result)}};
}

Json waiting(const std::string& reason, const std::string& message = {}) {
  Json result = {{"reason", reason}};
  if (!message.empty()) result["message"] = message;
  return {{"waiting", std::move(result)}};
}

// As Kubernetes writes them.
std::string cpu_text(std::int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : fmt::format("{}m", milli);
}
std::string memory_text(std::int64_t bytes) {
  for (const auto& [suffix, shift] : {std::pair("Gi", 30), {"Mi", 20}, {"Ki", 10}})
    if (bytes > 0 && bytes % (std::int64_t{1} << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, suffix);
  return std::to_string(bytes);
}

Json amounts(const std::optional<std::int64_t>& cpu, const std::optional<std::int64_t>& memory) {
  Json result = Json::object();
  if (cpu) result["cpu"] = cpu_text(*cpu);
  if (memory) result["memory"] = memory_text(*memory);
  return result;
}

Json resources_of(const Resources& resources) {
  Json result = Json::object();
  if (Json limits = amounts(resources.cpu_limit_milli, resources.memory_limit); !limits.empty())
    result["limits"] = std::move(limits);
  if (Json requests = amounts(resources.cpu_request_milli, resources.memory_request); !requests.empty())
    result["requests"] = std::move(requests);
  return result;
}

std::optional<std::int64_t> amount(const Json& told, const char* group, const char* name) {
  const std::string text = told.value(group, Json::object()).value(name, "");
  const auto number = name == std::string_view("cpu") ? kube::parse_milli(text) : kube::parse_quantity(text);
  return number ? std::optional(number.value()) : std::nullopt;
}

// Of what a status says is in force; nothing where an older podhost did not say it.
std::optional<Resources> recall_resources(const Json& told) {
  if (!told.contains("resources")) return std::nullopt;
  const Json& json = told.at("resources");
  return Resources{amount(json, "limits", "cpu"), amount(json, "requests", "cpu"),
                   amount(json, "limits", "memory"), amount(json, "requests", "memory")};
}

class StatusMaker {
 public:
  StatusMaker(const PodSpec& spec, const PodState& state, const Json& before, const BackoffRule& rule,
              Time now)
      : spec_(spec),
        state_(state),
        before_(before),
        rule_(rule),
        now_(now),
        initialized_(initialized(spec, state)),
        finished_(finished(spec, state)) {}

  Json make(const HostFacts& host) {
    Json containers = Json::array();
    Json init_containers = Json::array();
    for (std::size_t i = 0; i < state_.init_containers.size(); ++i) {
      init_containers.push_back(container(state_.init_containers[i], spec_.init_containers[i], true));
    }
    for (std::size_t i = 0; i < state_.containers.size(); ++i) {
      containers.push_back(container(state_.containers[i], spec_.containers[i], false));
    }
    const std::string phase = phase_of(containers, init_containers);
    Json status = {{"phase", phase},
                   {"hostIP", host.host_ip},
                   {"qosClass", qos_class(spec_)},
                   {"startTime", time_text(state_.started)},
                   {"conditions", conditions(phase, containers, init_containers)},
                   {"containerStatuses", std::move(containers)}};
    if (!init_containers.empty()) status["initContainerStatuses"] = std::move(init_containers);
    if (!state_.pod_ip.empty()) {
      status["podIP"] = state_.pod_ip;
      status["podIPs"] = Json::array({{{"ip", state_.pod_ip}}});
    }
    if (state_.failure) {
      status["reason"] = state_.failure->reason;
      status["message"] = state_.failure->message;
    }
    return status;
  }

 private:
  Json waiting_state(const ContainerState& container, const ContainerSpec& wanted, bool init) const {
    if (container.next && container.next->state == Next::State::failed) {
      const Next& next = *container.next;
      if (next.reason == "ErrImagePull" && now_ >= next.failed_at + k_pull_error_shown) {
        return waiting("ImagePullBackOff", fmt::format("Back-off pulling image \"{}\": ErrImagePull: {}",
                                                       next.image, next.message));
      }
      return waiting(next.reason, next.message);
    }
    if (state_.sandbox != Sandbox::ready && !state_.sandbox_message.empty()) {
      return waiting("ContainerCreating", "Failed to create pod sandbox: " + state_.sandbox_message);
    }
    if (!container.next && container.run && container.run->state == Run::State::ended) {
      const Run& run = *container.run;
      if (run.reason == "StartError") return waiting("RunContainerError", run.message);
      const auto when = restart_at(container, wanted.image, run.finished, rule_);
      if (when && *when > now_) {
        const auto delay = container.restart_backoff.at(wanted.image).delay;
        return waiting("CrashLoopBackOff",
                       fmt::format("back-off {} restarting failed container={} pod={}_{}({})",
                                   delay_text(delay), wanted.name, spec_.name, spec_.name_space, spec_.uid));
      }
    }
    return waiting(!init && spec_.init_containers.empty() ? "ContainerCreating" : "PodInitializing");
  }

  static std::string delay_text(Seconds delay) {
    const auto seconds = delay.count();
    return seconds < 60 ? fmt::format("{}s", seconds) : fmt::format("{}m{}s", seconds / 60, seconds % 60);
  }

  Json container(const ContainerState& container, const ContainerSpec& wanted, bool init) const {
    Json status = {{"name", container.name},  {"image", wanted.image},
                   {"imageID", ""},           {"ready", false},
                   {"started", false},        {"restartCount", std::max(container.started - 1, 0)},
                   {"state", Json::object()}, {"lastState", Json::object()}};
    const bool previous_known = container.previous && container.previous->exit_known;
    if (previous_known) status["lastState"] = terminated(*container.previous);
    if (!container.run) {
      status["state"] = waiting_state(container, wanted, init);
      return status;
    }
    const Run& run = *container.run;
    if (!run.id.empty()) status["containerID"] = "podman://" + run.id;
    status["imageID"] = run.image_id;
    // Until the exit code is known, a few milliseconds, a run that has ended still counts as running.
    if (run.state != Run::State::ended || !run.exit_known) {
      status["image"] = run.image;
      status["state"] = {{"running", {{"startedAt", time_text(run.started)}}}};
      const bool goes_on = !init || wanted.sidecar;
      status["ready"] = run.state != Run::State::ended && goes_on;
      status["started"] = true;
      if (goes_on) tell_resources(status, run, wanted);
      return status;
    }
    if (over(container, wanted, init)) {
      status["image"] = run.image;
      status["state"] = terminated(run);
      status["ready"] = init && !wanted.sidecar && run.exit_code == 0;
      return status;
    }
    status["image"] = run.image;
    status["state"] = waiting_state(container, wanted, init);
    status["lastState"] = terminated(run);
    return status;
  }

  static void tell_resources(Json& status, const Run& run, const ContainerSpec& wanted) {
    const Json in_force = resources_of(run.resources.value_or(wanted.resources));
    if (in_force.empty()) return;
    status["resources"] = in_force;
    const Resources& allocated = wanted.resources;
    status["allocatedResources"] = amounts(allocated.cpu_request_milli, allocated.memory_request);
  }

  // Of a size that the spec has and a container has not yet.
  std::optional<Json> resize_condition() const {
    for (const auto* list : {&state_.containers, &state_.init_containers})
      for (const auto& container : *list) {
        const auto& run = container.run;
        const ContainerSpec* wanted = spec_.find(container.name);
        if (!run || run->state == Run::State::ended || !run->resources || !wanted ||
            *run->resources == wanted->resources)
          continue;
        return condition("PodResizeInProgress", true, run->resize_error.empty() ? "" : "Error",
                         run->resize_error);
      }
    return std::nullopt;
  }

  bool over(const ContainerState& container, const ContainerSpec& wanted, bool init) const {
    const Run& run = *container.run;
    if (state_.deleting || state_.failure || state_.released) return true;
    if (wanted.sidecar) return finished_;
    if (init && run.exit_code == 0) return true;
    return !run.replaced && !container.next && !restarts(spec_.restart_policy, run);
  }

  std::string phase_of(const Json& containers, const Json& init_containers) const {
    if (state_.failure) return "Failed";
    std::size_t running = 0, stopped = 0, succeeded = 0, not_begun = 0;
    for (std::size_t i = 0; i < init_containers.size(); ++i) {
      const Json& state = init_containers[i].at("state");
      // Of sidecars only those count that run: the pod has not ended before they have.
      if (spec_.init_containers[i].sidecar)
        running += initialized_ && state.contains("running") ? 1 : 0;
      else if (state.contains("terminated") && state.at("terminated").at("exitCode") != 0)
        return "Failed";
    }
    for (const auto& status : containers) {
      const Json& state = status.at("state");
      if (state.contains("running")) {
        ++running;
      } else if (state.contains("terminated")) {
        ++stopped;
        if (state.at("terminated").at("exitCode") == 0) ++succeeded;
      } else if (status.at("lastState").contains("terminated")) {
        ++stopped;
      } else {
        ++not_begun;
      }
    }
    if (!initialized_ && running == 0 && stopped == 0) return "Pending";
    if (not_begun > 0) return "Pending";
    if (running > 0) return "Running";
    if (spec_.restart_policy == RestartPolicy::always && !state_.deleting) return "Running";
    if (stopped == succeeded) return "Succeeded";
    if (spec_.restart_policy == RestartPolicy::never || state_.deleting) return "Failed";
    return "Running";
  }

  Json condition(const char* type, bool holds, const std::string& reason = {},
                 const std::string& message = {}) const {
    Json result = {{"type", type},
                   {"status", holds ? "True" : "False"},
                   {"lastProbeTime", nullptr},
                   {"lastTransitionTime", time_text(now_)}};
    if (!reason.empty()) result["reason"] = reason;
    if (!message.empty()) result["message"] = message;
    for (const auto& old : before_.value("conditions", Json::array())) {
      if (old.value("type", "") == type && old.value("status", "") == result["status"]) {
        result["lastTransitionTime"] = old.value("lastTransitionTime", time_text(now_));
      }
    }
    return result;
  }

  Json conditions(const std::string& phase, const Json& containers, const Json& init_containers) const {
    std::vector<std::string> unready, incomplete;
    for (const auto& status : containers) {
      if (!status.at("ready").get<bool>()) unready.push_back(status.at("name").get<std::string>());
    }
    for (std::size_t i = 0; i < init_containers.size(); ++i) {
      const Json& status = init_containers[i];
      const bool sidecar = spec_.init_containers[i].sidecar;
      const bool complete =
          sidecar ? state_.init_containers[i].run.has_value() : status.at("ready").get<bool>();
      if (!complete) incomplete.push_back(status.at("name").get<std::string>());
      if (sidecar && !status.at("ready").get<bool>()) unready.push_back(status.at("name").get<std::string>());
    }
    Json list = Json::array();
    if (phase == "Succeeded") {
      list.push_back(condition("Initialized", true, "PodCompleted"));
      list.push_back(condition("Ready", false, "PodCompleted"));
      list.push_back(condition("ContainersReady", false, "PodCompleted"));
    } else {
      list.push_back(initialized_ ? condition("Initialized", true)
                                  : condition("Initialized", false, "ContainersNotInitialized",
                                              fmt::format("containers with incomplete status: [{}]",
                                                          fmt::join(incomplete, " "))));
      for (const auto* type : {"Ready", "ContainersReady"}) {
        list.push_back(unready.empty() ? condition(type, true)
                                       : condition(type, false, "ContainersNotReady",
                                                   fmt::format("containers with unready status: [{}]",
                                                               fmt::join(unready, " "))));
      }
    }
    list.push_back(condition("PodScheduled", true));
    if (auto resizing = resize_condition()) list.push_back(*std::move(resizing));
    return list;
  }

  const PodSpec& spec_;
  const PodState& state_;
  const Json& before_;
  const BackoffRule& rule_;
  Time now_;
  bool initialized_, finished_;
};

std::optional<Run> recall(const Json& state, const std::string& image, const std::string& image_id) {
  if (!state.is_object() || !state.contains("terminated")) return std::nullopt;
  const Json& told = state.at("terminated");
  Run run;
  run.state = Run::State::ended;
  run.exit_known = true;
  run.image = image;
  run.image_id = image_id;
  run.exit_code = told.value("exitCode", 0);
  run.reason = told.value("reason", "");
  run.message = told.value("message", "");
  run.started = parse_time(told.value("startedAt", "")).value_or(Time{});
  run.finished = parse_time(told.value("finishedAt", "")).value_or(Time{});
  const std::string id = told.value("containerID", "");
  run.id = id.starts_with("podman://") ? id.substr(9) : id;
  return run;
}

// A run that was under way when podhost ended. Unless podman still has it, nobody will ever know how it
// ended.
Run vanished(const Json& told, const ContainerSpec& wanted) {
  Run run;
  run.state = Run::State::ended;
  run.exit_known = true;
  run.exit_code = k_exit_unknown;
  run.reason = k_status_unknown;
  run.message = k_status_unknown_message;
  run.image = told.value("image", wanted.image);
  run.image_id = told.value("imageID", "");
  const std::string id = told.value("containerID", "");
  run.id = id.starts_with("podman://") ? id.substr(9) : id;
  run.started = parse_time(told.at("state").at("running").value("startedAt", "")).value_or(Time{});
  run.finished = std::chrono::system_clock::now();
  return run;
}

}  // namespace

Json make_status(const PodSpec& spec, const PodState& state, const Json& before, const HostFacts& host,
                 const BackoffRule& rule, Time now) {
  return StatusMaker(spec, state, before, rule, now).make(host);
}

std::optional<Time> status_changes_at(const PodState& state, Time now) {
  std::optional<Time> first;
  for (const auto* list : {&state.init_containers, &state.containers}) {
    for (const auto& container : *list) {
      if (!container.next || container.next->state != Next::State::failed) continue;
      if (container.next->reason != "ErrImagePull") continue;
      const Time when = container.next->failed_at + k_pull_error_shown;
      if (when > now && (!first || when < *first)) first = when;
    }
  }
  return first;
}

void recall_runs(const PodSpec& spec, const Json& status, PodState* state) {
  if (const auto started = parse_time(status.value("startTime", ""))) state->started = *started;
  if (const std::string reason = status.value("reason", ""); !reason.empty()) {
    state->failure = PodFailure{reason, status.value("message", "")};
  }
  for (const auto* key : {"initContainerStatuses", "containerStatuses"}) {
    for (const auto& told : status.value(key, Json::array())) {
      ContainerState* container = state->find(told.value("name", ""));
      const ContainerSpec* wanted = container ? spec.find(container->name) : nullptr;
      if (!wanted) continue;
      const Json now = told.value("state", Json::object());
      const std::string image_id = told.value("imageID", "");
      container->started = told.value("restartCount", 0);
      if (told.contains("containerID") || now.contains("running")) ++container->started;
      container->run = recall(now, told.value("image", wanted->image), image_id);
      auto last = recall(told.value("lastState", Json::object()), wanted->image, image_id);
      // A container that waits to start again has its newest run in lastState.
      if (!container->run && now.contains("waiting")) {
        container->run = std::move(last);
        continue;
      }
      container->previous = std::move(last);
      if (now.contains("running")) {
        container->run = vanished(told, *wanted);
        container->run->resources = recall_resources(told);
      }
    }
  }
}

}  // namespace glidepod::podhost
