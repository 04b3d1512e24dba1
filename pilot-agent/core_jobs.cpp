// The jobs in the payload containers, and glues that go.

#include <algorithm>
#include <csignal>

#include "lib/base/log.hpp"
#include "pilot-agent/core.hpp"
#include "pilot-agent/words.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;

namespace {
// From a job's end to that of its glue where a kernel or a node's shutdown signals all processes of a
// container, in any order. A container that is stopped in the ordinary way says goodbye before its job ends.
constexpr Milliseconds k_doubt{200};

bool stops_containers(const ExitStatus& status) {
  return status.how == ExitStatus::How::signaled && (status.number == SIGTERM || status.number == SIGKILL);
}
}  // namespace

void Core::on_goodbye(GlueId glue, Time now) {
  Container* container = find_glue(glue);
  if (!container) return;
  if (container->running) {  // it may yet say how the job ended
    container->running->goodbye = true;
    return;
  }
  if (container->doubtful) settle_doubt(*container, true);
  note("event=goodbye container={} state={}", container->name, name_of(container->state));
  glue_gone(*container, true, now);
}

void Core::on_glue_lost(GlueId glue, Time now) {
  Container* container = find_glue(glue);
  if (!container) return;  // it said goodbye, or was replaced
  const bool goodbye = container->running && container->running->goodbye;
  if (!goodbye) warn("event=glue_lost container={} state={}", container->name, name_of(container->state));
  glue_gone(*container, goodbye, now);
}

void Core::glue_gone(Container& container, bool goodbye, Time now) {
  container.glue = 0;
  container.learning_until.reset();
  if (finishing_) return;
  if (container.change) {
    container.change->goodbye = goodbye;
    // Whatever comes next may as well be the old image, started again.
    if (!goodbye) container.change->by_status = true;
    return;
  }
  if (container.doubtful) settle_doubt(container, goodbye);
  container.reservation.reset();
  // Its answer, if it comes meanwhile, finds it there.
  const auto asking = std::exchange(container.asking, std::nullopt);
  if (asking) queue_.push_front(asking->waiting);
  const auto running = std::exchange(container.running, std::nullopt);
  if (container.state != State::broken) container.state = State::absent;
  if (asking) dispatch(now);
  if (!running) return;
  end_visits(*running);
  if (goodbye) {
    if (running->request.client != 0)
      fail(running->request, wire::Fault::infrastructure, "the payload container was stopped from outside");
    return;
  }
  if (running->request.client != 0)
    lost_jobs_.push_back(
        {container.name, container.instance, running->request, now + policy_.status_patience});
  // The kubelet would start the same image string again, each time after a longer pause.
  if (!pod_known_) return;
  container.settled = false;
  begin(container, {}, std::nullopt, now);
}

void Core::on_started(GlueId glue, JobId job, int pid, Time now) {
  const Container* container = find_glue(glue);
  if (!container || !container->running || container->running->job != job) return;
  note("event=started job={} container={} pid={} ms={:.1f}", word(container->running->request.job),
       container->name, pid, std::chrono::duration<double, std::milli>(now - container->last_used).count());
}

void Core::on_job_ended(GlueId glue, const wire::JobEnded& ended, Time now) {
  Container* container = find_glue(glue);
  if (!container || !container->running || container->running->job != ended.job) return;
  const Running running = *std::exchange(container->running, std::nullopt);
  end_visits(running);
  note(
      "event=ended job={} owner={} container={} status={} cpu_s={:.3f} rss_kib={} wall_s={:.3f} killed={} "
      "removed={} "
      "clean={}",
      word(running.request.job), word(running.request.owner), container->name,
      quoted(ended.status.to_string()),
      static_cast<double>(ended.user_microseconds + ended.system_microseconds) / 1e6, ended.max_rss_kib,
      static_cast<double>(ended.ended_ns - ended.started_ns) / 1e9, ended.processes_killed,
      ended.files_removed, ended.clean ? "yes" : "no");
  if (!ended.clean) container->spoiled = true;
  container->last_used = now;
  container->state = State::idle;
  container->doubtful = Doubtful{running.request, ended.status, now + k_doubt};
  if (running.goodbye)
    glue_gone(*container, true, now);
  else if (running.signalled || !stops_containers(ended.status))
    settle_doubt(*container, false);
  else
    container->state = State::draining;  // until it is known whether it goes away
  dispatch(now);
}

void Core::settle_doubt(Container& container, bool goodbye) {
  const Doubtful doubtful = *std::exchange(container.doubtful, std::nullopt);
  if (container.state == State::draining) container.state = State::idle;
  if (doubtful.request.client == 0) return;
  if (goodbye)
    fail(doubtful.request, wire::Fault::infrastructure, "the payload container was stopped from outside");
  else
    act(Answer{doubtful.request.client, doubtful.status});
}

void Core::on_launch_failed(GlueId glue, const wire::LaunchFailed& failed, Time now) {
  Container* container = find_glue(glue);
  if (!container || !container->running || container->running->job != failed.job) return;
  const Running running = *std::exchange(container->running, std::nullopt);
  end_visits(running);
  container->last_used = now;
  container->state = State::idle;
  // What glue cannot do here it may be able to do in a fresh container.
  if (failed.fault == wire::Fault::infrastructure) container->spoiled = true;
  if (running.request.client != 0) fail(running.request, failed.fault, failed.message);
  if (running.goodbye) glue_gone(*container, true, now);
  dispatch(now);
}

void Core::check_lost(const kube::Pod& pod, Time) {
  for (std::size_t i = 0; i < lost_jobs_.size();) {
    const LostJob lost = lost_jobs_[i];
    const ContainerStatus* status = pod.status(lost.container);
    const kube::Termination* end = nullptr;
    if (status && status->restart_count >= lost.instance) {
      // What "last" means depends on whether the instance after the lost one has begun.
      const bool next_began = status->restart_count > lost.instance;
      if (!next_began && status->terminated)
        end = &*status->terminated;
      else if (status->last_terminated && (next_began || status->state == ContainerStatus::State::waiting))
        end = &*status->last_terminated;
    }
    if (!end) {
      ++i;
      continue;
    }
    lost_jobs_.erase(lost_jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    settle_lost(lost, end);
  }
}

void Core::settle_lost(const LostJob& lost, const kube::Termination* end) {
  if (end && end->reason == "OOMKilled") {
    warn("event=ended job={} owner={} container={} status=\"signal 9 (KILL)\" reason=OOMKilled",
         word(lost.request.job), word(lost.request.owner), lost.container);
    return act(Answer{lost.request.client, ExitStatus::signaled(SIGKILL)});
  }
  std::string why = "the payload container was lost";
  if (end) why += fmt::format(": {} (exit code {})", end->reason, end->exit_code);
  fail(lost.request, wire::Fault::infrastructure, std::move(why));
}

}  // namespace glidepod::agent
