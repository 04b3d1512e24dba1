// Jobs whose glue is gone. What the pod's status says of the container tells why.

#include <algorithm>
#include <csignal>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/ending.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;

// Keeps the job of a glue that is gone until the pod's status tells why.
void Core::lose_job(Container& container, EventKind event, Time now) {
  const auto* draining = std::get_if<Draining>(&container.state);
  const bool clean = draining != nullptr && draining->ended;
  Job job = std::move(*container.job());
  if (event == EventKind::lost) job.end.gone_at = now;
  job.end.container_by = now + policy_.status_patience;
  end_visits(job);
  end_inner(job.id, now);
  actions_.add(JobOver{job.id});
  if (!clean) leftovers_.add({job.request.uid, job.request.gid}, container.name);
  if (job.request.client != 0 && verdict_on(job, now).kind != Verdict::Kind::open) {
    conclude(job, now);
  } else if (job.request.client != 0) {
    // The status tells the job's container by its id. As soon as the kubelet has noticed its end, it shows it
    // as the last terminated one.
    const std::int64_t restarts = container.status ? container.status->restart_count : 0;
    EndFacts end = job.end;
    end.request_mib = job.request.memory_mib;
    end.limit_kib = container.memory_limit_kib;
    end.last_seen_kib = job.pulse.answer.memory_kib;
    lost_jobs_.push_back({container.name, container.last_instance, restarts, job.request, std::move(end)});
  }
  // This agent never stops a container that has a job, so somebody else did.
  if (event == EventKind::goodbye) {
    container.unsettle(now + policy_.calm);
    containers_.become(container, Absent{now + policy_.calm}, event);
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

// How that container ended. If its id is not known, the next end that the status shows is taken for it.
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

void Core::check_lost(const kube::Pod& pod, Time now) {
  std::erase_if(lost_jobs_, [&](LostJob& lost) {
    const ContainerStatus* status = pod.status(lost.container);
    const kube::Termination* end =
        status != nullptr ? end_of(*status, lost.instance, lost.restarts) : nullptr;
    if (end == nullptr) return false;
    lost.end.container = *end;
    tell_end(lost.request, lost.end, {}, now);
    return true;
  });
}

void Core::check_lost(Time now) {
  std::erase_if(lost_jobs_, [&](const LostJob& lost) {
    if (now < lost.end.container_by) return false;
    tell_end(lost.request, lost.end, {}, now);
    return true;
  });
}

}  // namespace glidepod::agent
