#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/base/log.hpp"
#include "podhost/keep/pod_status.hpp"
#include "podhost/keep/pod_worker.hpp"

// The part of PodWorker that is about single containers: prepare, start, stop, learn the end, bury, adopt.

namespace glidepod::podhost {
namespace {

constexpr Seconds k_resize_retry{5};

void send(const Fd& process, int signal) {
  if (process) syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

bool has_ended(const Fd& process) {
  pollfd end{process.get(), POLLIN, 0};
  return poll(&end, 1, 0) == 1;
}

}  // namespace

void PodWorker::prepare(ContainerState& container, bool restart) {
  const ContainerSpec& wanted = *spec_.find(container.name);
  if (restart && container.run && container.run->reason != "StartError") {
    count_restart(container.restart_backoff[wanted.image], container.run->finished, now(), context_.backoff);
  }
  const std::uint64_t token = ++last_token_;
  const int attempt = container.started;
  container.next = Next{.token = token, .image = wanted.image, .resources = wanted.resources};
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  handles_[container.name].cancelled = cancelled;
  const std::string podman_name =
      fmt::format("{}-{}-{}-{}", podman_pod_name(spec_), wanted.name, attempt, token);
  launch(
      [tools = context_.tools, spec = spec_, wanted, facts = facts(), attempt, podman_name, cancelled] {
        return prepare_container(tools, spec, wanted, facts, attempt, podman_name, *cancelled);
      },
      [name = wanted.name, token, image = wanted.image](PodWorker& self, Result<Prepared> result) {
        self.prepared(name, token, image, std::move(result));
      });
}

void PodWorker::prepared(const std::string& name, std::uint64_t token, const std::string& image,
                         Result<Prepared> result) {
  ContainerState& container = *state_.find(name);
  if (!container.next || container.next->token != token) {
    if (result) remove_later(result->id);
    return;
  }
  Next& next = *container.next;
  if (result) {
    next.state = Next::State::ready;
    next.id = result->id;
    next.image_id = result->image_id;
    handles_[name].next_process = std::move(result->pidfd);
    handles_[name].next_conmon = std::move(result->conmon);
    handles_[name].next_stop_signal = result->stop_signal;
    container.pull_backoff = {};
    return;
  }
  const NotPrepared why = *result.error().fact<NotPrepared>();
  const std::string message = result.error().message();
  if (why.start_error) {
    next.state = Next::State::unstartable;
    next.image_id = why.image_id;
    next.message = message;
    return;
  }
  spdlog::warn("event=container_not_created pod={}/{} container={} reason={} message={}", spec_.name_space,
               spec_.name, name, why.reason, glidepod::quoted(message));
  next.state = Next::State::failed;
  next.reason = why.reason;
  next.message = message;
  next.failed_at = now();
  switch (why.retry) {
    case NotPrepared::Retry::never:
      break;
    case NotPrepared::Retry::soon:
      next.retry_at = next.failed_at + k_podman_away_retry;
      break;
    case NotPrepared::Retry::backoff:
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
  handles.next_conmon.reset();
  if (!container.next->id.empty()) remove_later(container.next->id);
  container.next.reset();
}

void PodWorker::remove_later(const std::string& id) {
  launch([tools = context_.tools, id] { return remove_container(tools.podman, id); },
         [id](PodWorker&, const Result<void>& result) {
           if (!result)
             spdlog::warn("event=container_not_removed id={} error={}", id,
                          glidepod::quoted(result.error().message()));
         });
}

void PodWorker::start(ContainerState& container) {
  if (container.next->state == Next::State::unstartable) return start_failed(container, *container.next);
  container.next->state = Next::State::starting;
  launch(
      [tools = context_.tools, id = container.next->id, asked_before = container.next->start_unanswered] {
        return start_container(tools.podman, id, asked_before);
      },
      [name = container.name, token = container.next->token](PodWorker& self, const Result<void>& result) {
        self.started(name, token, result);
      });
}

void PodWorker::started(const std::string& name, std::uint64_t token, const Result<void>& result) {
  ContainerState& container = *state_.find(name);
  if (!container.next || container.next->token != token) return;
  Handles& handles = handles_[name];
  const bool unanswered = !result && podman_away(result.error());
  if (unanswered && !has_ended(handles.next_process)) {
    container.next->state = Next::State::ready;
    container.next->start_unanswered = true;
    return;
  }
  Next next = std::move(*container.next);
  container.next.reset();
  if (!result && !unanswered) {
    handles.next_process.reset();
    remove_later(next.id);
    next.message = result.error().message();
    return start_failed(container, next);
  }
  if (container.run) container.previous = std::move(container.run);
  container.run = Run{.id = next.id,
                      .image = next.image,
                      .image_id = next.image_id,
                      .attempt = container.started,
                      .started = now(),
                      .resources = next.resources};
  ++container.started;
  handles.process = std::move(handles.next_process);
  handles.conmon = std::move(handles.next_conmon);
  handles.stop_signal = handles.next_stop_signal;
  watch_run(container);
  spdlog::info("event=container_started pod={}/{} container={} image={} id={}", spec_.name_space, spec_.name,
               name, glidepod::quoted(next.image), next.id.substr(0, 12));
}

// A container that could not be started counts as one that ran and failed, as with the kubelet.
void PodWorker::start_failed(ContainerState& container, const Next& next) {
  spdlog::warn("event=container_not_started pod={}/{} container={} error={}", spec_.name_space, spec_.name,
               container.name, glidepod::quoted(next.message));
  if (container.run) container.previous = std::move(container.run);
  Run run{.state = Run::State::ended,
          .image = next.image,
          .image_id = next.image_id,
          .attempt = container.started,
          .started = now()};
  run.exit_known = true;
  run.exit_code = 128;
  run.reason = "StartError";
  run.message = next.message;
  run.finished = now();
  container.run = std::move(run);
  ++container.started;
  count_restart(container.restart_backoff[next.image], now(), now(), context_.backoff);
  container.next.reset();
}

void PodWorker::watch_run(ContainerState& container) {
  const auto watched =
      context_.loop.watch(handles_[container.name].process.get(), EPOLLIN,
                          [this, name = container.name, id = container.run->id](std::uint32_t) {
                            ended(name, id);
                            sync();
                          });
  if (!watched)
    spdlog::error("event=container_not_watched error={}", glidepod::quoted(watched.error().message()));
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
  run.stop_by = now() + grace;
}

void PodWorker::kill(ContainerState& container) {
  container.run->kill_at.reset();
  send(handles_[container.name].process, SIGKILL);
}

void PodWorker::resize(ContainerState& container) {
  container.run->resizing = true;
  launch([tools = context_.tools, id = container.run->id,
          wanted = spec_.find(container.name)->resources] { return resize_container(tools, id, wanted); },
         [name = container.name, id = container.run->id, wanted = spec_.find(container.name)->resources](
             PodWorker& self, const Result<void>& result) {
           ContainerState& then = *self.state_.find(name);
           if (!then.run || then.run->id != id) return;
           Run& run = *then.run;
           run.resizing = false;
           run.resize_retry_at.reset();
           if (result) {
             run.resize_error.clear();
             run.resources = wanted;
             spdlog::info("event=container_resized pod={}/{} container={} cpu_m={} memory={}",
                          self.spec_.name_space, self.spec_.name, name, wanted.cpu_limit_milli.value_or(0),
                          wanted.memory_limit.value_or(0));
             return;
           }
           run.resize_retry_at = now() + k_resize_retry;
           if (run.resize_error == result.error().message()) return;
           run.resize_error = result.error().message();
           spdlog::warn("event=container_not_resized pod={}/{} container={} error={}", self.spec_.name_space,
                        self.spec_.name, name, glidepod::quoted(run.resize_error));
         });
}

void PodWorker::ended(const std::string& name, const std::string& id) {
  ContainerState& container = *state_.find(name);
  Handles& handles = handles_[name];
  context_.loop.forget(handles.process.get());
  handles.process.reset();
  container.run->state = Run::State::ended;
  container.run->finished = now();
  container.run->kill_at.reset();
  learn_end(name, id, container.run->attempt, std::move(handles.conmon));
}

void PodWorker::learn_end(const std::string& name, const std::string& id, int attempt, Fd conmon) {
  launch([tools = context_.tools, spec = spec_, wanted = *spec_.find(name), id, attempt,
          conmon = std::make_shared<Fd>(
              std::move(conmon))] { return podhost::learn_end(tools, spec, wanted, id, attempt, *conmon); },
         [name, id, attempt](PodWorker& self, EndResult result) {
           self.state_.unsaved = true;
           self.ended_.push_back({name, id, attempt});
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
           spdlog::info("event=container_ended pod={}/{} container={} exit_code={} reason={}",
                        self.spec_.name_space, self.spec_.name, name, result.exit_code, result.reason);
         });
}

void PodWorker::bury_ended() {
  for (const auto& remains : std::exchange(ended_, {}))
    launch(
        [tools = context_.tools, uid = spec_.uid, remains] {
          bury_container(tools, uid, remains.container, remains.id, remains.attempt);
          return true;
        },
        [](PodWorker&, bool) {});
}

void PodWorker::adopt_container(FoundContainer found) {
  const ContainerInfo& info = found.info;
  // Of a pod that cannot be read any more: its containers end when it is deleted.
  if (spec_.containers.empty()) return;
  const auto label_of = [&](const char* key) {
    const auto value = info.labels.find(key);
    return value == info.labels.end() ? std::string() : value->second;
  };
  ContainerState* container = state_.find(label_of(label::k_container));
  if (!container || !has_begun(info)) return remove_later(info.id);
  Handles& handles = handles_[container->name];
  if (handles.process) {  // two of them run; the older one should have been gone
    context_.loop.forget(handles.process.get());
    handles.process.reset();
    remove_later(container->run->id);
  }
  if (container->run && container->run->id != info.id) container->previous = std::move(container->run);
  Run run{.id = info.id, .image = label_of(label::k_image), .image_id = label_of(label::k_image_id)};
  run.attempt = std::atoi(label_of(label::k_attempt).c_str());
  run.started = parse_time(info.started).value_or(now());
  if (container->run && container->run->id == info.id) run.resources = container->run->resources;
  container->run = std::move(run);
  container->started = std::max(container->started, container->run->attempt + 1);
  handles.stop_signal = info.stop_signal;
  if (found.process) {
    handles.process = std::move(found.process);
    handles.conmon = std::move(found.conmon);
    watch_run(*container);
  } else {
    container->run->state = Run::State::ended;
    container->run->finished = parse_time(info.finished).value_or(now());
    learn_end(container->name, info.id, container->run->attempt, std::move(found.conmon));
  }
}

}  // namespace glidepod::podhost
