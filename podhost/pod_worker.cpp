#include "podhost/pod_worker.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/log.hpp"
#include "podhost/pod_status.hpp"
#include "podhost/volumes.hpp"

namespace glidepod::podhost {
namespace {

constexpr Seconds k_podman_away_retry{1};
constexpr int k_rounds = 8;

Time now() { return std::chrono::system_clock::now(); }

void send(const Fd& process, int signal) {
  if (process) syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

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
  for (const auto& container : spec_.init_containers) state_.init_containers.push_back({.name = container.name});
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
  auto parsed = parse_pod(*pod_, context_.rules);
  if (parsed) {
    spec_ = std::move(parsed->spec);
  } else {
    // It was accepted once, by an older podhost. It can still be looked at and deleted.
    spdlog::error("stored pod refused error={}", glidepod::quoted(parsed.error().message));
    spec_.name = metadata.value("name", "");
    spec_.ns = metadata.value("namespace", "");
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

// Runs job() in a worker thread, then done(result) and sync() in the loop's.
template <typename Job, typename Done>
void PodWorker::launch(Job job, Done done) {
  ++state_.jobs;
  WorkerContext& context = context_;
  context.workers.run([&context, uid = spec_.uid, job = std::move(job), done = std::move(done)] {
    auto result = std::make_shared<decltype(job())>(job());
    context.inbox.post([&context, uid, result, done] {
      PodWorker* worker = context.find(uid);
      if (!worker) return;
      --worker->state_.jobs;
      done(*worker, std::move(*result));
      worker->sync();
    });
  });
}

void PodWorker::sync() {
  Decision decision = decide(spec_, state_, context_.backoff, now());
  // What was applied may call for more, or for a timer: until decide() is content.
  for (int round = 0; !decision.actions.empty() && round < k_rounds; ++round) {
    for (const auto& action : decision.actions) {
      if (action.kind == Action::Kind::forget) return forget();
      apply(action);
    }
    decision = decide(spec_, state_, context_.backoff, now());
  }
  publish();
  context_.loop.cancel(timer_);
  timer_ = 0;
  auto wake_at = decision.wake_at;
  if (const auto change = status_changes_at(state_, now()); change && (!wake_at || *change < *wake_at)) {
    wake_at = change;
  }
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
    case Action::Kind::create_sandbox: return create_sandbox();
    case Action::Kind::remove_sandbox: return remove_sandbox();
    case Action::Kind::prepare: return prepare(*container, action.restart);
    case Action::Kind::discard: return discard(*container);
    case Action::Kind::start: return start(*container);
    case Action::Kind::stop: return stop(*container, action.grace, action.replaced);
    case Action::Kind::kill: return kill(*container);
    case Action::Kind::release: return release();
    case Action::Kind::forget: return;
    case Action::Kind::exceed_deadline:
      spdlog::info("pod deadline exceeded pod={}/{}", spec_.ns, spec_.name);
      state_.deadline_exceeded = true;
      return;
  }
}

void PodWorker::publish() {
  const Json before = pod_->value("status", Json::object());
  Json status = make_status(spec_, state_, before, {context_.host.host_ip}, context_.backoff, now());
  if (status == before) return;
  if (!context_.store.set_status(spec_.uid, std::move(status))) return;
  if (PodPtr fresh = context_.store.find(spec_.uid)) pod_ = std::move(fresh);
}

void PodWorker::create_sandbox() {
  state_.sandbox = Sandbox::creating;
  launch([tools = context_.tools, spec = spec_, facts = facts()] { return podhost::create_sandbox(tools, spec, facts); },
         [](PodWorker& self, SandboxResult result) {
           if (result.error.empty()) {
             self.sandbox_failures_ = 0;
             self.state_.sandbox = Sandbox::ready;
             self.state_.sandbox_message.clear();
             self.state_.pod_ip = result.ip;
             self.watch_sandbox(std::move(result.pidfd));
             self.open_socket();
             return;
           }
           spdlog::warn("pod sandbox failed pod={}/{} error={}", self.spec_.ns, self.spec_.name, glidepod::quoted(result.error));
           self.state_.sandbox = Sandbox::failed;
           self.state_.sandbox_message = result.error;
           const int doublings = std::min(self.sandbox_failures_++, 8);
           const Seconds delay = std::min(self.context_.backoff.first * (1 << doublings), self.context_.backoff.most);
           self.state_.sandbox_retry_at = now() + (result.away ? k_podman_away_retry : delay);
         });
}

void PodWorker::open_socket() {
  for (const auto& volume : spec_.volumes) {
    if (!volume.api_socket) continue;
    const std::string path = context_.tools.files.volume(spec_.uid, volume.name) + "/api.sock";
    if (const auto opened = context_.sockets.open(spec_.uid, path, spec_.fs_group); !opened) {
      spdlog::error("pod socket not opened pod={}/{} error={}", spec_.ns, spec_.name, glidepod::quoted(opened.error().message()));
    }
  }
}

void PodWorker::watch_sandbox(Fd pidfd) {
  drop_sandbox_watch();
  sandbox_process_ = std::move(pidfd);
  const auto watched = context_.loop.watch(sandbox_process_.get(), EPOLLIN, [this](std::uint32_t) {
    drop_sandbox_watch();
    spdlog::warn("pod sandbox lost pod={}/{}", spec_.ns, spec_.name);
    state_.sandbox = Sandbox::lost;
    sync();
  });
  if (!watched) spdlog::error("pod sandbox not watched error={}", glidepod::quoted(watched.error().message()));
}

void PodWorker::drop_sandbox_watch() {
  if (!sandbox_process_) return;
  context_.loop.forget(sandbox_process_.get());
  sandbox_process_.reset();
}

void PodWorker::remove_sandbox() {
  state_.sandbox = Sandbox::removing;
  drop_sandbox_watch();
  context_.sockets.close(spec_.uid);
  launch([tools = context_.tools, name = podman_pod_name(spec_)] { return tools.podman.remove_pod(name); },
         [](PodWorker& self, const Result<void>& result) {
           if (!result) {
             spdlog::warn("pod sandbox not removed pod={}/{} error={}", self.spec_.ns, self.spec_.name,
                          glidepod::quoted(result.error().message()));
             self.state_.sandbox = Sandbox::failed;
             self.state_.removal_retry_at = self.state_.sandbox_retry_at = now() + k_podman_away_retry;
             return;
           }
           self.state_.removal_retry_at.reset();
           self.state_.sandbox = Sandbox::none;
           self.state_.pod_ip.clear();
           if (self.state_.deleting || self.state_.deadline_exceeded || finished(self.spec_, self.state_)) return;
           // A new sandbox runs the init containers again.
           for (auto& container : self.state_.init_containers) container.run.reset();
         });
}

void PodWorker::release() {
  state_.released = true;
  launch([tools = context_.tools, uid = spec_.uid] { return remove_volumes(tools.files, uid); },
         [](PodWorker& self, const Result<void>& result) {
           if (!result) spdlog::error("volumes not removed pod={}/{} error={}", self.spec_.ns, self.spec_.name,
                                      glidepod::quoted(result.error().message()));
         });
}

// The folder goes in a worker thread: it may hold many files.
void PodWorker::forget() {
  ++state_.jobs;  // keeps decide() from asking again
  context_.sockets.close(spec_.uid);
  WorkerContext& context = context_;
  context.workers.run([&context, uid = spec_.uid] {
    if (const auto removed = remove_volumes(context.tools.files, uid); !removed) {
      spdlog::error("volumes not removed uid={} error={}", uid, glidepod::quoted(removed.error().message()));
    }
    context.store.remove(uid);
    context.inbox.post([&context, uid] { context.gone(uid); });
  });
}

void PodWorker::prepare(ContainerState& container, bool restart) {
  const ContainerSpec& wanted = *spec_.find(container.name);
  if (restart && container.run && container.run->reason != "StartError") {
    count_restart(container.restart_backoff[wanted.image], container.run->finished, now(), context_.backoff);
  }
  const std::uint64_t token = ++last_token_;
  const int attempt = container.started;
  container.next = Next{.token = token, .image = wanted.image};
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  handles_[container.name].cancelled = cancelled;
  const std::string podman_name = fmt::format("{}-{}-{}-{}", podman_pod_name(spec_), wanted.name, attempt, token);
  launch(
      [tools = context_.tools, spec = spec_, wanted, facts = facts(), attempt, podman_name, cancelled] {
        return prepare_container(tools, spec, wanted, facts, attempt, podman_name, *cancelled);
      },
      [name = wanted.name, token, image = wanted.image](PodWorker& self, PrepareResult result) {
        self.prepared(name, token, image, std::move(result));
      });
}

void PodWorker::prepared(const std::string& name, std::uint64_t token, const std::string& image,
                         PrepareResult result) {
  ContainerState& container = *state_.find(name);
  if (!container.next || container.next->token != token) {
    if (!result.id.empty()) remove_later(result.id);
    return;
  }
  Next& next = *container.next;
  if (result.reason.empty()) {
    next.state = Next::State::ready;
    next.id = result.id;
    next.image_id = result.image_id;
    handles_[name].next_process = std::move(result.pidfd);
    handles_[name].next_conmon = std::move(result.conmon);
    handles_[name].next_stop_signal = result.stop_signal;
    container.pull_backoff = {};
    return;
  }
  if (result.start_error) return start_failed(container, image, result.image_id, result.message);
  spdlog::warn("container not created pod={}/{} container={} reason={} message={}", spec_.ns, spec_.name, name,
               result.reason, glidepod::quoted(result.message));
  next.state = Next::State::failed;
  next.reason = result.reason;
  next.message = result.message;
  next.failed_at = now();
  switch (result.retry) {
    case PrepareResult::Retry::never: break;
    case PrepareResult::Retry::soon: next.retry_at = next.failed_at + k_podman_away_retry; break;
    case PrepareResult::Retry::backoff:
      if (container.pull_backoff_image != image) container.pull_backoff = {};
      container.pull_backoff_image = image;
      count_restart(container.pull_backoff, next.failed_at, next.failed_at, context_.backoff);
      next.retry_at = next.failed_at + container.pull_backoff.delay;
      break;
  }
}

void PodWorker::discard(ContainerState& container) {
  if (!container.next) return;
  Handles& handles = handles_[container.name];
  if (handles.cancelled) *handles.cancelled = true;
  handles.next_process.reset();
  if (!container.next->id.empty()) remove_later(container.next->id);
  container.next.reset();
}

void PodWorker::remove_later(const std::string& id) {
  launch([tools = context_.tools, id] { return tools.podman.remove_container(id); },
         [id](PodWorker&, const Result<void>& result) {
           if (!result) spdlog::warn("container not removed id={} error={}", id, glidepod::quoted(result.error().message()));
         });
}

void PodWorker::start(ContainerState& container) {
  container.next->state = Next::State::starting;
  launch([tools = context_.tools, id = container.next->id] { return tools.podman.start_container(id); },
         [name = container.name, token = container.next->token](PodWorker& self, const Result<void>& result) {
           self.started(name, token, result);
         });
}

void PodWorker::started(const std::string& name, std::uint64_t token, const Result<void>& result) {
  ContainerState& container = *state_.find(name);
  if (!container.next || container.next->token != token) return;
  const Next next = std::move(*container.next);
  container.next.reset();
  Handles& handles = handles_[name];
  if (!result) {
    handles.next_process.reset();
    remove_later(next.id);
    return start_failed(container, next.image, next.image_id, result.error().message());
  }
  if (container.run) container.previous = std::move(container.run);
  container.run = Run{.id = next.id, .image = next.image, .image_id = next.image_id, .attempt = container.started,
                      .started = now()};
  ++container.started;
  handles.process = std::move(handles.next_process);
  handles.conmon = std::move(handles.next_conmon);
  handles.stop_signal = handles.next_stop_signal;
  watch_run(container);
  spdlog::info("container started pod={}/{} container={} image={} id={}", spec_.ns, spec_.name, name,
               glidepod::quoted(next.image), next.id.substr(0, 12));
}

// A container that could not be started counts as one that ran and failed, as with the kubelet.
void PodWorker::start_failed(ContainerState& container, const std::string& image, const std::string& image_id,
                             const std::string& message) {
  spdlog::warn("container not started pod={}/{} container={} error={}", spec_.ns, spec_.name, container.name,
               glidepod::quoted(message));
  container.next.reset();
  if (container.run) container.previous = std::move(container.run);
  Run run{.state = Run::State::ended, .image = image, .image_id = image_id, .attempt = container.started,
          .started = now()};
  run.exit_known = true;
  run.exit_code = 128;
  run.reason = "StartError";
  run.message = message;
  run.finished = now();
  container.run = std::move(run);
  ++container.started;
  count_restart(container.restart_backoff[image], now(), now(), context_.backoff);
}

void PodWorker::watch_run(ContainerState& container) {
  const auto watched = context_.loop.watch(handles_[container.name].process.get(), EPOLLIN,
                                           [this, name = container.name, id = container.run->id](std::uint32_t) {
                                             ended(name, id);
                                             sync();
                                           });
  if (!watched) spdlog::error("container not watched error={}", glidepod::quoted(watched.error().message()));
}

void PodWorker::stop(ContainerState& container, Seconds grace, bool replaced) {
  Run& run = *container.run;
  const Handles& handles = handles_[container.name];
  if (grace == Seconds(0)) {
    send(handles.process, SIGKILL);
  } else if (run.state == Run::State::running) {
    send(handles.process, handles.stop_signal);
  }
  run.state = Run::State::stopping;
  run.replaced = run.replaced || replaced;
  run.kill_at.reset();
  if (grace > Seconds(0)) run.kill_at = now() + grace;
}

void PodWorker::kill(ContainerState& container) {
  container.run->kill_at.reset();
  send(handles_[container.name].process, SIGKILL);
}

void PodWorker::ended(const std::string& name, const std::string& id) {
  ContainerState& container = *state_.find(name);
  Handles& handles = handles_[name];
  context_.loop.forget(handles.process.get());
  handles.process.reset();
  container.run->state = Run::State::ended;
  container.run->finished = now();
  container.run->kill_at.reset();
  bury(name, id, container.run->attempt, std::move(handles.conmon));
}

void PodWorker::bury(const std::string& name, const std::string& id, int attempt, Fd conmon) {
  launch([tools = context_.tools, spec = spec_, wanted = *spec_.find(name), id, attempt,
          conmon = std::make_shared<Fd>(std::move(conmon))] {
           return bury_container(tools, spec, wanted, id, attempt, *conmon);
         },
         [name, id](PodWorker& self, EndResult result) {
           ContainerState& container = *self.state_.find(name);
           for (auto* run : {&container.run, &container.previous}) {
             if (!*run || (*run)->id != id) continue;
             (*run)->exit_known = true;
             (*run)->exit_code = result.exit_code;
             (*run)->reason = result.reason;
             (*run)->message = result.message;
             if (result.started && *result.started != Time{}) (*run)->started = *result.started;
             if (result.finished && *result.finished > (*run)->started) (*run)->finished = *result.finished;
           }
           spdlog::info("container ended pod={}/{} container={} exit_code={} reason={}", self.spec_.ns,
                        self.spec_.name, name, result.exit_code, result.reason);
         });
}

void PodWorker::adopt(const ContainerInfo* infra, std::vector<ContainerInfo> containers) {
  recall_runs(spec_, pod_->value("status", Json::object()), &state_);
  Podman& podman = context_.tools.podman;
  if (infra) {
    auto process = open_process(podman, *infra);
    state_.sandbox = process ? Sandbox::ready : Sandbox::lost;
    state_.pod_ip = spec_.host_network ? context_.host.host_ip : infra->ip;
    if (process) {
      watch_sandbox(std::move(process).value());
      open_socket();
    }
  } else if (!finished(spec_, state_)) {
    for (auto& container : state_.init_containers) container.run.reset();
  }
  std::ranges::sort(containers, {}, [](const ContainerInfo& info) { return info.started; });
  for (const auto& info : containers) {
    const auto name = info.labels.find(label::k_container);
    ContainerState* container = name == info.labels.end() ? nullptr : state_.find(name->second);
    const bool begun = info.state != "created" && info.state != "initialized" && info.state != "configured";
    if (!container || !begun) {
      remove_later(info.id);
      continue;
    }
    const auto value = [&](const char* key) {
      const auto found = info.labels.find(key);
      return found == info.labels.end() ? std::string() : found->second;
    };
    Handles& handles = handles_[container->name];
    if (handles.process) {  // two of them run; the older one should have been gone
      context_.loop.forget(handles.process.get());
      handles.process.reset();
      remove_later(container->run->id);
    }
    if (container->run && container->run->id != info.id) container->previous = std::move(container->run);
    Run run{.id = info.id, .image = value(label::k_image), .image_id = value(label::k_image_id)};
    run.attempt = std::atoi(value(label::k_attempt).c_str());
    run.started = parse_time(info.started).value_or(now());
    container->run = std::move(run);
    container->started = std::max(container->started, container->run->attempt + 1);
    handles.stop_signal = info.stop_signal;
    auto process = open_process(podman, info);
    if (process) {
      handles.process = std::move(process).value();
      handles.conmon = open_conmon(info);
      watch_run(*container);
    } else {
      container->run->state = Run::State::ended;
      container->run->finished = parse_time(info.finished).value_or(now());
      bury(container->name, info.id, container->run->attempt, open_conmon(info));
    }
  }
  spdlog::info("pod adopted pod={}/{} containers={}", spec_.ns, spec_.name, containers.size());
}

}  // namespace glidepod::podhost
