// The jobs in the payload containers, while they run and while they end.

#include <csignal>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

namespace {
constexpr std::chrono::seconds k_files_move{60};  // from a job's end until its files are with the schedd
}  // namespace

void Core::on_started(GlueId glue, JobId id, int pid, Time now) {
  const Container* container = containers_.of_job(glue, id);
  if (container == nullptr) return;
  health_.job_started();
  leftovers_.forget(container->job()->request.uid);  // glue cleared this before the launch
  actions_.note("event=started job={} container={} pid={} ms={:.1f}", word(container->job()->request.job),
                container->name, pid,
                std::chrono::duration<double, std::milli>(now - container->last_used).count());
}

void Core::on_beat(GlueId glue, const wire::Beat& beat, Time now) {
  Container* container = containers_.of_glue(glue);
  if (container == nullptr) return;
  if (resizes_.take_used(*container, beat)) return settle(now);
  Pulse* pulse = container->pulse();
  if (pulse == nullptr || pulse->number != beat.number) return;
  pulse->until.reset();
  pulse->answer = beat;
  Job* job = container->job();
  if (job == nullptr) return;
  const Request& request = job->request;
  const bool over_disk = request.disk_kib > 0 && beat.disk_kib > request.disk_kib;
  if (!over_disk || container->kind() != State::running || job->goodbye() || request.client == 0) return;
  // The job is put on hold once nothing of it is left.
  job->end.disk = {beat.disk_kib, beat.disk_complete, request.disk_kib, request.request_disk_kib};
  kill_job(*container, EventKind::gone, now);
}

// From here on it is known how the job ended, whatever happens to its glue.
void Core::on_exited(GlueId glue, const wire::Exited& exited, Time now) {
  Container* container = containers_.of_job(glue, exited.job);
  if (container == nullptr || container->job()->end.exited) return;
  EndFacts& end = container->job()->end;
  end.exited = exited;
  end.exited_at = now;
  if (container->kind() == State::running) drain(*container, EventKind::exited, now);
}

void Core::drain(Container& container, EventKind event, Time now) {
  container.job()->digest = kube::digest_of(container.shown);
  const JobId id = container.job()->id;
  containers_.become(
      container, Draining{std::move(*container.job()), false, now + policy_.ending_patience, false}, event);
  end_inner(id, now);
}

void Core::signal_job(Container& container, int number, Time now) {
  if (ends_a_process(number)) container.job()->end.sent[number] = now;
  actions_.add(SignalJob{container.glue, container.job()->id, number});
}

void Core::kill_job(Container& container, EventKind event, Time now) {
  signal_job(container, SIGKILL, now);
  drain(container, event, now);
}

void Core::on_job_ended(GlueId glue, const wire::JobEnded& ended, Time now) {
  if (Container* own = containers_.of_clearing(glue, ended.job)) {
    leftovers_.cleared(*own, ended, now);
    if (own->stopped) part(*own, EventKind::goodbye, now);
    return settle(now);
  }
  Container* container = containers_.of_job(glue, ended.job);
  if (container == nullptr) return;
  // If the main process cannot be killed, no Exited came before.
  on_exited(glue, wire::Exited{ended.job, ended.status, ended.ended_ns, 0, 0, 0}, now);
  Job& job = *container->job();
  actions_.note(
      "event=ended job={} owner={} container={} status={} cpu_s={:.3f} rss_kib={} wall_s={:.3f} killed={} "
      "removed={} clean={}",
      word(job.request.job), word(job.request.owner), container->name, quoted(ended.status.to_string()),
      static_cast<double>(ended.user_microseconds + ended.system_microseconds) / 1e6, ended.max_rss_kib,
      static_cast<double>(ended.ended_ns - ended.started_ns) / 1e9, ended.processes_killed,
      ended.files_removed, ended.clean ? "yes" : "no");
  if (!ended.clean) {
    container->spoiled = container->unclean = true;
    leftovers_.add({job.request.uid, job.request.gid}, container->name);
  }
  container->last_used = now;
  visits_.job_over(job.id);
  job.end.ended_at = now;
  const Verdict verdict = verdict_on(job, now);
  if (verdict.kind != Verdict::Kind::open || job.request.client == 0 || queue_.stage() == Stage::finishing)
    finish_job(*container, EventKind::ended, now);
  else  // wait until it is known whether its container goes away
    containers_.become(*container, Draining{std::move(job), true, verdict.until, false}, EventKind::ended);
  settle(now);
}

// Finishes a job when nothing of it is left and its verdict is known.
void Core::finish_job(Container& container, EventKind event, Time now) {
  const bool waited = std::get<Draining>(container.state).meant;
  if (!waited && !container.job()->goodbye() && queue_.stage() != Stage::finishing &&
      containers_.has_inner(container.job()->id)) {
    // The pilot job has ended by itself. Its end is told when nothing of its own jobs is left.
    Draining draining{std::move(*container.job()), true, now + policy_.ending_patience, true};
    return containers_.become(container, std::move(draining), event);
  }
  const Job job = std::move(*container.job());
  const Request& request = job.request;
  // The time begins once the job's files are with the schedd.
  if (request.keep_idle > std::chrono::seconds(0))
    container.kept = {request.uid, now + k_files_move + request.keep_idle};
  containers_.become(container, Idle{}, event);
  actions_.add(JobOver{job.id});
  answers_.tell_end(job, now);
  if (job.goodbye()) part(container, EventKind::goodbye, now);
  release_outer(job.request.outer, now);
}

void Core::on_launch_failed(GlueId glue, const wire::LaunchFailed& failed, Time now) {
  if (Container* own = containers_.of_clearing(glue, failed.job)) {
    leftovers_.not_cleared(*own, now);
    if (own->stopped) part(*own, EventKind::goodbye, now);
    return settle(now);
  }
  Container* container = containers_.of_job(glue, failed.job);
  if (container == nullptr) return;
  const Job job = std::move(*container->job());
  visits_.job_over(job.id);
  container->last_used = now;
  if (failed.fault == wire::Fault::infrastructure) {
    container->spoiled = true;
    // What a pilot job asks for its own jobs is its own doing.
    if (!failed.left && job.request.outer == 0) health_.failed(failed.message);
  }
  containers_.become(*container, Idle{}, EventKind::no_launch);
  actions_.add(JobOver{job.id});
  if (job.request.client != 0) answers_.fail(job.request, failed.fault, failed.message);
  if (job.goodbye()) part(*container, EventKind::goodbye, now);
  release_outer(job.request.outer, now);
  settle(now);
}

// Keeps the job of a glue that is gone until the pod's status tells why.
void Core::lose_job(Container& container, EventKind event, Time now) {
  const auto* draining = std::get_if<Draining>(&container.state);
  const bool clean = draining != nullptr && draining->ended;
  Job job = std::move(*container.job());
  if (event == EventKind::lost) job.end.gone_at = now;
  job.end.container_by = now + policy_.status_patience;
  visits_.job_over(job.id);
  end_inner(job.id, now);
  actions_.add(JobOver{job.id});
  if (!clean) leftovers_.add({job.request.uid, job.request.gid}, container.name);
  if (job.request.client != 0 && verdict_on(job, now).kind != Verdict::Kind::open) {
    answers_.tell_end(job, now);
  } else if (job.request.client != 0) {
    answers_.lost_jobs.add(container, job);
  }
  // This agent never stops a container that has a job, so somebody else did.
  if (event == EventKind::goodbye) {
    container.unsettle(now + policy_.calm);
    containers_.become(container, Absent{now + policy_.calm}, event);
  } else {
    // The kubelet would start the same image string again, each time after a longer pause.
    begin(container, Image::home(), std::nullopt, event, now);
  }
  release_outer(job.request.outer, now);
}

// Looks after a glue that has a job, or clears.
void Core::check_glue(Container& container, Time now) {
  if (const auto* draining = std::get_if<Draining>(&container.state); draining && now >= draining->until) {
    if (draining->ended) return finish_job(container, EventKind::time, now);
    return give_up_glue(container, "did not end its job", now);
  }
  if (const auto* clearing = std::get_if<Clearing>(&container.state); clearing && now >= clearing->until)
    return give_up_glue(container, "did not end its job", now);
  Pulse& pulse = *container.pulse();
  if (pulse.until && now >= *pulse.until) return give_up_glue(container, "does not answer", now);
  if (now < pulse.next) return;
  pulse.next = now + policy_.beat;
  if (pulse.until) return;
  pulse.number = actions_.next_beat();
  pulse.until = now + policy_.beat_patience;
  actions_.add(SendBeat{container.glue, pulse.number});
}

// Gives up a glue that does not answer, since it is stopped or hangs in the kernel. Its container is made
// anew.
void Core::give_up_glue(Container& container, std::string_view why, Time now) {
  Job* job = container.job();
  if (job != nullptr) job->end.given_up = true;
  actions_.warn("event=glue_wedged container={} job={} reason=\"glue {}\"", container.name,
                word(job != nullptr ? job->request.job : ""), why);
  actions_.add(KillGlue{container.glue});
  part(container, EventKind::lost, now);
}

}  // namespace glidepod::agent
