// Jobs of pilot jobs. A pilot job is a job that is itself a pilot: its own jobs run in further payload
// containers of this pod.

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

// Ends the jobs of a pilot job that is over, or about to be.
void Core::end_inner(JobId outer, Time now) {
  for (Container& container : containers_) {
    const auto* reserved = std::get_if<Reserved>(&container.state);
    if (reserved != nullptr && reserved->request.outer == outer)
      containers_.become(container, Idle{}, EventKind::time);
    if (container.kind() != State::running || container.job()->request.outer != outer) continue;
    actions_.note("event=abandoned job={} container={} action=kill", word(container.job()->request.job),
                  container.name);
    kill_job(container, EventKind::gone, now);
  }
  queue_.refuse([outer](const Request& request) { return request.outer == outer; },
                "the pilot job that asked has ended");
}

// Called when a job of a pilot job is over. If it was the last one that the pilot job's end waited for, that
// end is told now.
void Core::release_outer(JobId outer, Time now) {
  if (outer == 0 || containers_.has_inner(outer)) return;
  for (Container& container : containers_) {
    const auto* draining = std::get_if<Draining>(&container.state);
    if (draining != nullptr && draining->meant && draining->job.id == outer)
      return finish_job(container, EventKind::ended, now);
  }
}

}  // namespace glidepod::agent
