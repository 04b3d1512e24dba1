// What the core does when time passes, and when it is next due.

#include <algorithm>

#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

void Core::on_time(Time now) {
  if (queue_.stage() == Stage::finishing) return;
  beside_.pulls.on_time(now);
  fail_unpulled(now);
  for (const Request& request : queue_.take_due(now))
    answers_.fail(request, wire::Fault::infrastructure,
                  containers_.known() ? beside_.why_queued(request)
                                      : "the pilot has not reached the Kubernetes API yet");
  for (Container& container : containers_) {
    // The container's glue does not connect: the kubelet waits before it starts the same image string again,
    // or the image cannot start. So the container is sent home.
    if (const auto* absent = std::get_if<Absent>(&container.state);
        absent && containers_.known() && absent->until && now >= *absent->until)
      begin(container, Image::home(), std::nullopt, EventKind::time, now);
    if (const auto* reserved = std::get_if<Reserved>(&container.state); reserved && now >= reserved->until)
      containers_.become(container, Idle{}, EventKind::time);
    if (const auto* asking = std::get_if<Asking>(&container.state);
        asking && now >= asking->waiting.arrived + policy_.bind_deadline) {
      const Request request = asking->waiting.request;
      containers_.become(container, Idle{}, EventKind::time);
      answers_.fail(request, wire::Fault::infrastructure,
                    "the registry did not tell the image's own command (ENTRYPOINT, CMD) in time");
    }
    if (container.kind() == State::switching) {
      follow(container, switches_.check(container, now), EventKind::time, now);
      continue;
    }
    if (container.busy()) check_glue(container, now);
    if (container.glue != 0) look_at(container, now);
    if (container.learning_until && now >= *container.learning_until) container.learning_until.reset();
    // The container has run for so long that the kubelet has acted on all that it was told.
    const bool known = container.glue != 0 && container.kind() != State::broken;
    if (known && container.calm_at && now >= *container.calm_at) container.calm_at.reset();
  }
  leftovers_.on_time(now);
  check_sizing(EventKind::time, now);
  answers_.tell_lost(answers_.lost_jobs.take_due(now), now);
  spares_.on_time(now);
  settle(now);
}

bool Core::watching() const {
  if (switches_.owes_test() && references_.home().image_id.empty()) return true;
  if (beside_.pulls.waiting()) return true;
  if (resizes_.awaits_status()) return true;
  return !answers_.lost_jobs.empty() || std::ranges::any_of(containers_, [](const Container& container) {
    // Only the status tells why a container is absent, and whether it will come.
    if (container.learning_until || container.kind() == State::absent) return true;
    const auto* step = std::get_if<Switching>(&container.state);
    return step != nullptr && (step->answered || step->leg == Switching::Leg::check);
  });
}

bool Core::usable() const {
  const auto connected = [](const Container& container) { return container.glue != 0; };
  return containers_.known() && std::ranges::any_of(containers_, connected) &&
         (health_.proven() || policy_.first == Policy::First::use);
}

std::optional<Time> Core::next_deadline() const {
  std::optional<Time> first;
  const auto consider = [&first](std::optional<Time> time) {
    if (time) first = std::min(first.value_or(*time), *time);
  };
  if (queue_.stage() == Stage::finishing) return first;
  consider(queue_.next_deadline());
  consider(answers_.lost_jobs.next_deadline());
  consider(beside_.pulls.next_deadline());
  consider(spares_.next_deadline());
  consider(resizes_.next_deadline());
  consider(leftovers_.next_deadline());
  const bool switching = std::ranges::any_of(
      containers_, [](const Container& container) { return container.kind() == State::switching; });
  const bool resting = std::ranges::any_of(containers_, [](const Container& container) {
    return container.kind() == State::idle || container.kind() == State::broken;
  });
  if (switches_.owes_test() && !references_.home().image_id.empty() && resting && !switching)
    consider(health_.no_test_before);
  for (const Container& container : containers_) {
    if (const auto* absent = std::get_if<Absent>(&container.state); absent && containers_.known())
      consider(absent->until);
    if (const auto* reserved = std::get_if<Reserved>(&container.state)) consider(reserved->until);
    if (const auto* asking = std::get_if<Asking>(&container.state))
      consider(asking->waiting.arrived + policy_.bind_deadline);
    if (container.kind() == State::switching) {
      consider(Switches::next_deadline(container));
      continue;
    }
    if (const Pulse* pulse = container.pulse()) {
      consider(pulse->next);
      consider(pulse->until);
    }
    if (const auto* draining = std::get_if<Draining>(&container.state)) consider(draining->until);
    if (const auto* clearing = std::get_if<Clearing>(&container.state)) consider(clearing->until);
    consider(container.learning_until);
    const bool known = container.glue != 0 && container.kind() != State::broken;
    if (known) consider(container.calm_at);
  }
  return first;
}

}  // namespace glidepod::agent
