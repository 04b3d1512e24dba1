// Jobs whose glue vanished: what the pod's status says of that container tells why.

#include <algorithm>
#include <csignal>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/ending.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;

// The glue of a running or ending job is gone.
void Core::lose_job(Container& container, EventKind event, Time now) {
  const auto* draining = std::get_if<Draining>(&container.state);
  const bool clean = draining != nullptr && draining->ended;
  const Job job = std::move(*container.job());
  end_visits(job);
  end_inner(job.id, now);
  act(JobOver{job.id});
  if (job.clears)
    left_.push_back(*job.clears);
  else if (!clean)
    leaves(container, job.request);
  if (job.request.client == 0) {
    // Nobody wants to know.
  } else if (job.exited && (job.stopped || own_end(job, job.exited->status))) {
    conclude(job);
  } else if (job.goodbye) {
    fail(job.request, wire::Fault::infrastructure, "the payload container was stopped from outside");
  } else {
    // Known by its id in the status, which is of the container before as soon as the kubelet has noticed.
    const std::int64_t restarts = container.status ? container.status->restart_count : 0;
    lost_jobs_.push_back({container.name, container.last_instance, restarts, job.request, job.exited,
                          now + policy_.status_patience, container.memory_limit_kib,
                          job.pulse.answer.memory_kib});
  }
  // Nobody here stops a container that has a job.
  if (event == EventKind::goodbye) {
    unsettle(container, now);
    become(container, Absent{now + policy_.calm}, event);
  } else {
    // The kubelet would start the same image string again, each time after a longer pause.
    begin(container, {}, std::nullopt, event, now);
  }
  release_outer(job.request.outer, now);
}

namespace {
bool is_end_of(const std::optional<kube::Termination>& end, std::string_view instance) {
  return end && is_of({.container_id = end->container_id}, instance);
}

// How that container ended. Where its id is not known, the next end that the status shows is taken for it.
const kube::Termination* end_of(const ContainerStatus& status, std::string_view instance,
                                std::int64_t restarts) {
  if (instance.empty()) {
    if (status.terminated) return &*status.terminated;
    const bool next = status.state == ContainerStatus::State::waiting || status.restart_count > restarts;
    return next && status.last_terminated ? &*status.last_terminated : nullptr;
  }
  if (is_end_of(status.terminated, instance)) return &*status.terminated;
  return is_end_of(status.last_terminated, instance) ? &*status.last_terminated : nullptr;
}
}  // namespace

void Core::check_lost(const kube::Pod& pod) {
  std::erase_if(lost_jobs_, [&](const LostJob& lost) {
    const ContainerStatus* status = pod.status(lost.container);
    const kube::Termination* end =
        status != nullptr ? end_of(*status, lost.instance, lost.restarts) : nullptr;
    if (end != nullptr) settle_lost(lost, end);
    return end != nullptr;
  });
}

void Core::check_lost(Time now) {
  std::erase_if(lost_jobs_, [&](const LostJob& lost) {
    if (now < lost.until) return false;
    settle_lost(lost, nullptr);
    return true;
  });
}

void Core::settle_lost(const LostJob& lost, const kube::Termination* end) {
  EndFacts facts;
  if (end != nullptr) facts.container = *end;
  facts.request_mib = lost.request.memory_mib;
  facts.limit_kib = lost.limit_kib;
  // What SIGTERM has ended first, the kernel did not kill for memory.
  if (!lost.exited || lost.exited->status == ExitStatus::signaled(SIGKILL))
    facts.last_seen_kib = lost.last_seen_kib;
  // An end that was in doubt is the container's, not the job's own, unless the kernel is known to have killed
  // the one or the other for memory.
  const bool of_memory = end != nullptr && end->reason == "OOMKilled";
  if (lost.exited && (of_memory || lost.exited->oom_kills > 0)) facts.exited = lost.exited;
  tell_end(lost.request, facts, {});
}

}  // namespace glidepod::agent
