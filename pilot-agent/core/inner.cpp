// Jobs of pilot jobs. A pilot job is a job that is itself a pilot: its own jobs run in further payload
// containers of this pod.

#include <algorithm>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {
namespace {

bool is_taken(const Container& container) {
  return container.job() != nullptr || container.waiting() != nullptr || container.kind() == State::reserved;
}

}  // namespace

std::optional<Core::Pilot> Core::pilot_in(std::string_view instance, uid_t uid) const {
  if (instance.empty()) return std::nullopt;
  const auto found = std::ranges::find(containers_, instance, &Container::instance);
  if (found == containers_.end() || found->kind() != State::running) return std::nullopt;
  const Job& job = *found->job();
  if (!job.request.pilot || job.request.uid != uid) return std::nullopt;
  return Pilot{job.id, job.request};
}

std::optional<Core::Pilot> Core::pilot_of(JobId id) const {
  const auto found = std::ranges::find_if(containers_, [id](const Container& container) {
    return container.job() != nullptr && container.job()->id == id && id != 0;
  });
  if (found == containers_.end()) return std::nullopt;
  return Pilot{id, found->job()->request};
}

// Whether the pilot job's own job can get a container. A pilot job has the pod's payload containers for
// itself, so no other job will free one later.
Result<void> Core::check_inner(const Request& request) const {
  const auto is_outer = [&](const Container& container) {
    return container.kind() == State::running && container.job()->id == request.outer;
  };
  if (std::ranges::none_of(containers_, is_outer)) return error("the pilot job that asks has ended");
  // A container that is reserved for this request does not count as taken.
  if (request.verb != wire::Verb::test && has_reserved_for(request)) return {};
  const auto taken = static_cast<std::size_t>(std::ranges::count_if(containers_, is_taken));
  if (taken + queue_.size() < containers_.size()) return {};
  return error(
      "all {} payload containers of this pod have a job, the pilot jobs themselves included; "
      "have the inner pilot run fewer jobs at a time",
      containers_.size());
}

bool Core::has_inner(JobId outer) const {
  return std::ranges::any_of(containers_, [outer](const Container& container) {
    return container.job() != nullptr && container.job()->request.outer == outer;
  });
}

// Ends the jobs of a pilot job that is over, or about to be.
void Core::end_inner(JobId outer, Time now) {
  for (Container& container : containers_) {
    const auto* reserved = std::get_if<Reserved>(&container.state);
    if (reserved != nullptr && reserved->request.outer == outer) become(container, Idle{}, EventKind::time);
    if (container.kind() != State::running || container.job()->request.outer != outer) continue;
    actions_.note("event=abandoned job={} container={} action=kill", word(container.job()->request.job),
                  container.name);
    kill_job(container, EventKind::gone, now);
  }
  refuse_waiting([outer](const Request& request) { return request.outer == outer; },
                 "the pilot job that asked has ended");
}

// Called when a job of a pilot job is over. If it was the last one that the pilot job's end waited for, that
// end is told now.
void Core::release_outer(JobId outer, Time now) {
  if (outer == 0 || has_inner(outer)) return;
  for (Container& container : containers_) {
    const auto* draining = std::get_if<Draining>(&container.state);
    if (draining != nullptr && draining->meant && draining->job.id == outer)
      return finish_job(container, EventKind::ended, now);
  }
}

}  // namespace glidepod::agent
