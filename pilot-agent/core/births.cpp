#include "pilot-agent/core/births.hpp"

#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

// The kubelet knows only what the pod was made with, so the first Hello is from that image. If anybody else
// patches the pod, the kubelet stops what runs.
bool Births::expect(Container& container, Time now) {
  container.proven = container.told.asked;
  if (container.proven.is_home()) return false;
  if (container.glue != 0) {
    born(container, now);
    return true;
  }
  if (auto* absent = std::get_if<Absent>(&container.state))
    *absent = {.until = now + policy_.bind_deadline, .unborn = true};
  return false;
}

void Births::born(Container& container, Time now) {
  pulls_.seen(container.proven);
  switches_.await_digest(container, now);
  actions_.note("event=born container={} image={}", container.name, word(container.proven));
}

bool Births::miscarried(const Container& container) {
  const auto* absent = std::get_if<Absent>(&container.state);
  if (absent == nullptr || !absent->unborn || !container.status) return false;
  const Trouble trouble = trouble_of(*container.status);
  if (trouble.kind == Trouble::Kind::none) return false;
  actions_.warn("event=not_born container={} image={} reason={}", container.name, word(container.told.asked),
                quoted(trouble.message));
  return true;
}

}  // namespace glidepod::agent
