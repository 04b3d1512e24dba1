// A payload container gets the size of its job's slot before the job begins (resizes.hpp). The image stays as
// it is until the kubelet has shown the size: if an image and a size come together, the kubelet loses the
// size (kubernetes#127356).

#include "lib/kube/failure.hpp"
#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

namespace {
constexpr std::string_view k_too_small =
    "the job's payload container cannot get the memory of the job's slot";
}  // namespace

// For a container that has the image. Whether the request has been placed; nothing if the size does not
// matter.
std::optional<bool> Core::place_sized(Container& container, Waiting& waiting, const std::string& how,
                                      std::chrono::microseconds before, Time now) {
  switch (resizes_.fit_of(container, waiting.request)) {
    case Resizes::Fit::fits:
      return std::nullopt;
    case Resizes::Fit::wait:
      return false;
    case Resizes::Fit::too_small:
      fail_too_small(waiting.request);
      return true;
    case Resizes::Fit::resize:
      break;
  }
  Switching step;
  step.same_image = true;
  step.asked = container.proven;
  step.deadline = waiting.arrived + policy_.bind_deadline;
  step.before = container.glue;
  step.how = how;
  step.before_bound = before;
  step.waiting = std::move(waiting);
  containers_.become(container, std::move(step), EventKind::assigned);
  resizes_.begin_step(container, now);
  return true;
}

void Core::fail_too_small(const Request& request) {
  health_.failed(std::string(k_too_small));
  answers_.fail(request, wire::Fault::infrastructure, std::string(k_too_small));
}

void Core::on_resized(std::uint64_t attempt, const Result<kube::Pod>& answer, Time now) {
  if (answer) {
    resizes_.taken(attempt, *answer);
    on_pod(*answer, now);
    // The status may have come before the answer.
    check_sizing(EventKind::answered, now);
  } else {
    const auto end = resizes_.refused(attempt, kube::Failure::of(answer.error()), now);
    if (!end) return;
    end_sizing(*end, EventKind::answered, now);
  }
  settle(now);
}

void Core::check_sizing(EventKind event, Time now) {
  if (const auto end = resizes_.check(now)) end_sizing(*end, event, now);
  resizes_.check_left(now);
}

// The container goes on to the request that it was found for.
void Core::end_sizing(const Resizes::End& end, EventKind event, Time now) {
  Container& container = *containers_.find(end.container);
  auto& step = std::get<Switching>(container.state);
  // A glue that does not answer is made anew with its container, which then gets its size.
  if (!end.deaf && step.waiting && resizes_.too_small(container, step.waiting->request))
    return fail_switch(container, wire::Fault::infrastructure, std::string(k_too_small), State::idle, event,
                       now);
  // The same if the container has turned out to run something else.
  if (end.deaf || container.spoiled) step.how.clear();
  if (step.how.empty()) return switches_.next_step(container, now);
  if (!step.waiting) return containers_.become(container, Idle{}, event);
  Switching done = std::move(step);
  ready(container, *std::move(done.waiting), done.how, done.before_bound, event, now);
}

}  // namespace glidepod::agent
