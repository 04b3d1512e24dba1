#include "pilot-agent/core/lost_jobs.hpp"

#include <algorithm>

#include "pilot-agent/core/proof.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;

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

void LostJobs::add(const Container& container, const Job& job) {
  const std::int64_t restarts = container.status ? container.status->restart_count : 0;
  EndFacts end = job.end;
  end.request_mib = job.request.memory_mib;
  end.limit_kib = container.memory_limit_kib;
  end.last_seen_kib = job.pulse.answer.memory_kib;
  lost_.push_back({container.name, container.last_instance, restarts, job.request, std::move(end)});
}

bool LostJobs::has(ClientId client) const {
  return std::ranges::any_of(lost_, [client](const Lost& lost) { return lost.request.client == client; });
}

void LostJobs::drop(ClientId client) {
  std::erase_if(lost_, [client](const Lost& lost) { return lost.request.client == client; });
}

std::vector<LostJobs::Lost> LostJobs::take_told(const kube::Pod& pod) {
  std::vector<Lost> told;
  std::erase_if(lost_, [&](Lost& lost) {
    const ContainerStatus* status = pod.status(lost.container);
    const kube::Termination* end =
        status != nullptr ? end_of(*status, lost.instance, lost.restarts) : nullptr;
    if (end == nullptr) return false;
    lost.end.container = *end;
    told.push_back(lost);
    return true;
  });
  return told;
}

std::vector<LostJobs::Lost> LostJobs::take_due(Time now) {
  std::vector<Lost> due;
  std::erase_if(lost_, [&](const Lost& lost) {
    if (now < lost.end.container_by) return false;
    due.push_back(lost);
    return true;
  });
  return due;
}

std::optional<Time> LostJobs::next_deadline() const {
  std::optional<Time> first;
  for (const Lost& lost : lost_)
    first = std::min(first.value_or(lost.end.container_by), lost.end.container_by);
  return first;
}

}  // namespace glidepod::agent
