// Containers that the pod was made with a job's image in, so that the first jobs of a pilot find it there.

#include <algorithm>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

// For a pod that had no agent before this one. The kubelet knows only what the pod was made with, so the
// first Hello is from that image. If anybody else patches the pod, the kubelet stops what runs.
void Core::expect_birth(Container& container, Time now) {
  container.proven = container.told.asked;
  if (container.proven.is_home()) return;
  if (container.glue != 0) return born(container, now);
  if (auto* absent = std::get_if<Absent>(&container.state))
    *absent = {.until = now + policy_.bind_deadline, .unborn = true};
}

void Core::born(Container& container, Time now) {
  pulls_.seen(container.proven);
  switches_.await_digest(container, now);
  actions_.note("event=born container={} image={}", container.name, word(container.proven));
  look_at(container, now);
}

// Sends a container home at the first trouble: no job waits for its image, and jobs may want the container.
// This does not count as a failure of the pilot.
bool Core::miscarried(Container& container, Time now) {
  const auto* absent = std::get_if<Absent>(&container.state);
  if (absent == nullptr || !absent->unborn || !container.status) return false;
  const Trouble trouble = trouble_of(*container.status, pod_.credentials);
  if (trouble.kind == Trouble::Kind::none) return false;
  actions_.warn("event=not_born container={} image={} reason={}", container.name, word(container.told.asked),
                quoted(trouble.message));
  begin(container, Image::home(), std::nullopt, EventKind::status, now);
  return true;
}

}  // namespace glidepod::agent
