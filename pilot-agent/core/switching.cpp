// Containers get other images (switches.hpp), for a request or without one.

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using Leg = Switching::Leg;

void Core::begin(Container& container, const Image& asked, std::optional<Waiting> waiting, EventKind event,
                 Time now) {
  Switching step;
  step.same_image = container.proven == asked && container.kind() == State::idle;
  step.asked = asked;
  step.deadline = (waiting ? waiting->arrived : now) + policy_.bind_deadline;
  step.waiting = std::move(waiting);
  if (container.kind() == State::idle) step.before = container.glue;
  containers_.become(container, std::move(step), event);
  auto& own = std::get<Switching>(container.state);
  if (own.waiting && own.before != 0 &&
      resizes_.fit_of(container, own.waiting->request) == Resizes::Fit::resize)
    resizes_.begin_step(container, now);
  else
    switches_.next_step(container, now);
  // Asks the registry while the node is busy. If the request fails here, the switch goes on, since another
  // job may want that image.
  if (own.waiting && image_commands_.ask(*own.waiting, now) == ImageCommands::Command::failed)
    own.waiting.reset();
}

// For a container that started by itself. Nothing is patched, but the status must show that it runs what the
// pod says.
void Core::check_again(Container& container, EventKind event, Time now) {
  Switching step;
  step.leg = Leg::check;
  step.asked = container.told.asked;
  step.deadline = now + policy_.bind_deadline;
  containers_.become(container, std::move(step), event);
  follow(container, switches_.judge(container, now), event, now);
}

void Core::follow(Container& container, const Switches::Outcome& outcome, EventKind event, Time now) {
  switch (outcome.kind) {
    case Switches::Outcome::Kind::under_way:
      return;
    case Switches::Outcome::Kind::done:
      return step_done(container, event, now);
    case Switches::Outcome::Kind::failed:
      return fail_switch(container, outcome.fault, outcome.message, outcome.next, event, now);
    case Switches::Outcome::Kind::stale:
      actions_.add(KillGlue{container.glue});
      part(container, EventKind::lost, now);
      return follow(container, switches_.go_on(container, now), event, now);
  }
}

void Core::step_done(Container& container, EventKind event, Time now) {
  if (!switches_.arrived(container, now)) return;
  auto& step = std::get<Switching>(container.state);
  if (step.waiting) {
    const bool any = step.waiting->request.any_image, beside = step.waiting->beside;
    step.how = any ? "any" : step.same_image ? "fresh" : beside ? "pulled" : "switched";
    // Until now the container had no glue, or nobody waited for it.
    const Request& request = step.waiting->request;
    if (container.size.limit != request.slot_size &&
        resizes_.fit_of(container, request) == Resizes::Fit::resize)
      return resizes_.begin_step(container, now);
  }
  Switching done = std::move(step);
  if (done.waiting) {
    ready(container, *std::move(done.waiting), done.how, {}, event, now);
  } else {
    container.came_by = !done.announced ? "warm" : done.same_image ? "fresh" : "switched";
    containers_.become(container, Idle{}, event);
  }
  look_at(container, now);
}

void Core::fail_switch(Container& container, wire::Fault fault, const std::string& message, State next,
                       EventKind event, Time now) {
  const Switching step = std::move(std::get<Switching>(container.state));
  if (step.leg == Leg::size) resizes_.leave(container.name, now);
  containers_.become(container, next == State::idle ? AnyState(Idle{}) : AnyState(Broken{}), event);
  if (next == State::broken) container.unsettle(now + policy_.calm);
  // The image could not be pulled or started. The switch home will tell whether the image or the pilot is at
  // fault.
  const bool in_doubt = fault == wire::Fault::infrastructure && step.leg == Leg::target &&
                        next == State::broken && step.trouble.kind != Trouble::Kind::none;
  if (step.spare) {
    spares_.failed(step.asked, now);
    if (fault == wire::Fault::user) spares_.announced.failed(step.asked, message, now);
  } else if (fault == wire::Fault::infrastructure && !in_doubt) {
    health_.failed(message);
  }
  // The pilot's own image did not start either.
  if (step.accused) health_.doubts.drop(*step.accused);
  const bool accused = in_doubt && !step.spare && step.trouble.kind != Trouble::Kind::busy;
  if (step.waiting && accused)
    answers_.fail_in_doubt(
        step.waiting->request,
        health_.doubts.add(step.asked, step.waiting->request.named, message, step.trouble.counts, now),
        message, step.trouble.counts, now);
  else if (step.waiting)
    answers_.fail(step.waiting->request, fault, message);
  else
    actions_.warn("event=switch_failed container={} image={} reason={}", container.name, word(step.reference),
                  quoted(message));
  // The container goes home at once, so that the kubelet stops trying and the next job finds the container
  // ready.
  if (next != State::broken || step.leg != Leg::target) return;
  begin(container, Image::home(), std::nullopt, event, now);
  if (auto* home = std::get_if<Switching>(&container.state); accused && home != nullptr)
    home->accused = step.asked;
}

}  // namespace glidepod::agent
