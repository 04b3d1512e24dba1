#include "podhost/keep/pod_worker.hpp"

#include <algorithm>

#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "podhost/keep/pod_status.hpp"
#include "podhost/runtime/volumes.hpp"

namespace glidepod::podhost {
namespace {

constexpr int k_rounds = 8;
constexpr Seconds k_save_retry{5};
constexpr const char* k_lost_reason = "NodeLost";
constexpr const char* k_lost_message = "The pod was removed from podman by somebody other than podhost";

std::map<std::string, std::string> text_map(const Json& metadata, const char* key) {
  std::map<std::string, std::string> result;
  const auto found = metadata.find(key);
  if (found == metadata.end()) return result;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) result[name] = value.get<std::string>();
  }
  return result;
}

}  // namespace

PodWorker::PodWorker(WorkerContext& context, PodPtr pod) : context_(context) {
  state_.started = now();
  object_changed(std::move(pod));
  for (const auto& container : spec_.init_containers)
    state_.init_containers.push_back({.name = container.name});
  for (const auto& container : spec_.containers) state_.containers.push_back({.name = container.name});
}

PodWorker::~PodWorker() {
  context_.loop.cancel(timer_);
  drop_sandbox_watch();
  for (auto& [name, handles] : handles_) {
    if (handles.process) context_.loop.forget(handles.process.get());
    if (handles.cancelled) *handles.cancelled = true;
  }
}

void PodWorker::object_changed(PodPtr pod) {
  pod_ = std::move(pod);
  const Json& metadata = pod_->at("metadata");
  // What is refused is refused when a pod is made: this one may run, and the host have another name since.
  const SpecRules stored{text_of(member(*pod_, "spec"), "nodeName"), true};
  auto parsed = parse_pod(*pod_, stored);
  if (parsed) {
    spec_ = std::move(parsed->spec);
  } else {
    // It was accepted once, by an older podhost. It can still be looked at and deleted.
    spdlog::error("event=stored_pod_refused error={}", glidepod::quoted(parsed.error().message()));
    spec_.name = metadata.value("name", "");
    spec_.name_space = metadata.value("namespace", "");
    spec_.uid = metadata.value("uid", "");
  }
  if (metadata.contains("deletionTimestamp")) {
    state_.deleting = Seconds(metadata.value("deletionGracePeriodSeconds", spec_.grace_seconds));
  }
}

void PodWorker::cancel() {
  for (auto& [name, handles] : handles_) {
    if (handles.cancelled) *handles.cancelled = true;
  }
}

PodFacts PodWorker::facts() const {
  PodFacts result = context_.host;
  result.labels = text_map(pod_->at("metadata"), "labels");
  result.annotations = text_map(pod_->at("metadata"), "annotations");
  result.pod_ip = state_.pod_ip;
  return result;
}

void PodWorker::sync() {
  // How a container ended is saved before anything is decided by it.
  if (state_.unsaved) publish();
  Decision decision = decide(spec_, state_, context_.backoff, now());
  // What was applied may call for more, or for a timer: until decide() is content.
  for (int round = 0; !decision.actions.empty() && round < k_rounds; ++round) {
    for (const auto& action : decision.actions) {
      if (action.kind == Action::Kind::forget) return forget();
      apply(action);
    }
    decision = decide(spec_, state_, context_.backoff, now());
  }
  const bool waited = state_.unsaved;
  publish();
  if (waited && !state_.unsaved) return sync();
  context_.loop.cancel(timer_);
  timer_ = 0;
  auto wake_at = decision.wake_at;
  if (const auto change = status_changes_at(state_, now()); change && (!wake_at || *change < *wake_at)) {
    wake_at = change;
  }
  if (const Time retry = now() + k_save_retry; state_.unsaved && (!wake_at || retry < *wake_at))
    wake_at = retry;
  if (wake_at) {
    const auto delay = std::chrono::ceil<Milliseconds>(*wake_at - now());
    timer_ = context_.loop.after(std::max(delay, Milliseconds(0)), [this] {
      timer_ = 0;
      sync();
    });
  }
}

void PodWorker::apply(const Action& action) {
  ContainerState* container = state_.find(action.container);
  switch (action.kind) {
    case Action::Kind::create_sandbox:
      return create_sandbox();
    case Action::Kind::remove_sandbox:
      return remove_sandbox();
    case Action::Kind::prepare:
      return prepare(*container, action.restart);
    case Action::Kind::discard:
      return discard(*container);
    case Action::Kind::start:
      return start(*container);
    case Action::Kind::stop:
      return stop(*container, action.grace, action.replaced);
    case Action::Kind::kill:
      return kill(*container);
    case Action::Kind::resize:
      return resize(*container);
    case Action::Kind::release:
      return release();
    case Action::Kind::forget:
      return;
    case Action::Kind::exceed_deadline:
      return fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
  }
}

void PodWorker::publish() {
  const Json before = pod_->value("status", Json::object());
  Json status = make_status(spec_, state_, before, {context_.host.host_ip}, context_.backoff, now());
  if (status == before && !state_.unsaved) return;
  state_.unsaved = !context_.store.set_status(spec_.uid, std::move(status));
  if (PodPtr fresh = context_.store.find(spec_.uid)) pod_ = std::move(fresh);
  if (!state_.unsaved) bury_ended();
}

void PodWorker::create_sandbox() {
  state_.sandbox = Sandbox::creating;
  launch([tools = context_.tools, spec = spec_,
          facts = facts()] { return podhost::create_sandbox(tools, spec, facts); },
         [](PodWorker& self, Result<MadeSandbox> made) {
           if (made) {
             self.sandbox_failures_ = 0;
             self.state_.sandbox = Sandbox::ready;
             self.state_.sandbox_message.clear();
             self.state_.pod_ip = made->ip;
             self.watch_sandbox(std::move(made->pidfd));
             self.open_socket();
             return;
           }
           spdlog::warn("event=sandbox_failed pod={}/{} error={}", self.spec_.name_space, self.spec_.name,
                        glidepod::quoted(made.error().message()));
           self.state_.sandbox = Sandbox::failed;
           self.state_.sandbox_message = made.error().message();
           const int doublings = std::min(self.sandbox_failures_++, 8);
           const Seconds delay =
               std::min(self.context_.backoff.first * (1 << doublings), self.context_.backoff.most);
           self.state_.sandbox_retry_at = now() + (podman_away(made.error()) ? k_podman_away_retry : delay);
         });
}

void PodWorker::open_socket() {
  for (const auto& volume : spec_.volumes) {
    if (!volume.api_socket) continue;
    const std::string path = context_.tools.files.volume(spec_.uid, volume.name) + "/api.sock";
    if (const auto opened = context_.sockets.open(spec_.uid, path, spec_.fs_group); !opened) {
      spdlog::error("event=pod_socket_not_opened pod={}/{} error={}", spec_.name_space, spec_.name,
                    glidepod::quoted(opened.error().message()));
    }
  }
}

void PodWorker::watch_sandbox(Fd pidfd) {
  drop_sandbox_watch();
  sandbox_process_ = std::move(pidfd);
  const auto watched = context_.loop.watch(sandbox_process_.get(), EPOLLIN, [this](std::uint32_t) {
    drop_sandbox_watch();
    sandbox_lost();
    sync();
  });
  if (!watched)
    spdlog::error("event=sandbox_not_watched error={}", glidepod::quoted(watched.error().message()));
}

// A sandbox that died is made again, as by the kubelet. One that somebody removed is not: who removed it
// meant the pod, and its owner sees what sees the owner of a pod whose node is gone.
void PodWorker::sandbox_lost() {
  spdlog::warn("event=sandbox_lost pod={}/{}", spec_.name_space, spec_.name);
  state_.sandbox = Sandbox::lost;
  launch([tools = context_.tools, name = podman_pod_name(spec_)] { return has_pod(tools.podman, name); },
         [](PodWorker& self, const Result<bool>& result) {
           if (result && !result.value()) self.fail(k_lost_reason, k_lost_message);
         });
}

void PodWorker::fail(const std::string& reason, const std::string& message) {
  if (state_.failure || state_.deleting || finished(spec_, state_)) return;
  spdlog::warn("event=pod_failed pod={}/{} reason={}", spec_.name_space, spec_.name, reason);
  state_.failure = PodFailure{reason, message};
}

void PodWorker::drop_sandbox_watch() {
  if (!sandbox_process_) return;
  context_.loop.forget(sandbox_process_.get());
  sandbox_process_.reset();
}

void PodWorker::remove_sandbox() {
  state_.sandbox = Sandbox::removing;
  state_.pod_ip.clear();  // by which a later podhost knows that this one meant it
  drop_sandbox_watch();
  context_.sockets.close(spec_.uid);
  launch([tools = context_.tools,
          name = podman_pod_name(spec_)] { return podhost::remove_sandbox(tools.podman, name); },
         [](PodWorker& self, const Result<void>& result) {
           if (!result) {
             spdlog::warn("event=sandbox_not_removed pod={}/{} error={}", self.spec_.name_space,
                          self.spec_.name, glidepod::quoted(result.error().message()));
             self.state_.sandbox = Sandbox::failed;
             self.state_.removal_retry_at = self.state_.sandbox_retry_at = now() + k_podman_away_retry;
             return;
           }
           self.state_.removal_retry_at.reset();
           self.state_.sandbox = Sandbox::none;
           if (self.state_.deleting || self.state_.failure || finished(self.spec_, self.state_)) return;
           // A new sandbox runs the init containers again.
           for (auto& container : self.state_.init_containers) container.run.reset();
         });
}

void PodWorker::release() {
  state_.released = true;
  context_.sockets.close(spec_.uid);
  launch([tools = context_.tools, uid = spec_.uid] { return remove_volumes(tools.files, uid); },
         [](PodWorker& self, const Result<void>& result) {
           if (!result)
             spdlog::error("event=volumes_not_removed pod={}/{} error={}", self.spec_.name_space,
                           self.spec_.name, glidepod::quoted(result.error().message()));
         });
}

// The folder goes in a worker thread: it may hold many files.
void PodWorker::forget() {
  ++state_.tasks;  // keeps decide() from asking again
  context_.sockets.close(spec_.uid);
  WorkerContext& context = context_;
  context.workers.run([&context, uid = spec_.uid] {
    if (const auto removed = remove_volumes(context.tools.files, uid); !removed) {
      spdlog::error("event=volumes_not_removed uid={} error={}", uid,
                    glidepod::quoted(removed.error().message()));
    }
    context.store.remove(uid);
    context.inbox.post([&context, uid] { context.gone(uid); });
  });
}

void PodWorker::adopt(FoundPod found) {
  const Json before = pod_->value("status", Json::object());
  recall_runs(spec_, before, &state_);
  if (found.infra) {
    state_.pod_ip = spec_.host_network ? context_.host.host_ip : found.infra->info.ip;
    if (found.infra->process) {
      state_.sandbox = Sandbox::ready;
      watch_sandbox(std::move(found.infra->process));
      open_socket();
    } else {
      sandbox_lost();
    }
  } else if (!before.value("podIP", "").empty()) {
    fail(k_lost_reason, k_lost_message);
  } else if (!finished(spec_, state_)) {
    for (auto& container : state_.init_containers) container.run.reset();
  }
  std::ranges::sort(found.containers, {},
                    [](const FoundContainer& container) { return container.info.started; });
  for (auto& container : found.containers) adopt_container(std::move(container));
  spdlog::info("event=pod_adopted pod={}/{} containers={}", spec_.name_space, spec_.name,
               found.containers.size());
}

}  // namespace glidepod::podhost
