// Requests, and which container serves each.

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using std::chrono::duration_cast;
using std::chrono::microseconds;

namespace {
constexpr std::string_view k_no_files =
    "the image has no file: what has this name in the registry is no container image (a SIF or a chart, "
    "say), "
    "or it is empty";
}

// Finds a container for the request; false if the request has to wait.
bool Core::place(Waiting& waiting, Time now) {
  const Request& request = waiting.request;
  const Image asked = references_.asked_by(request);
  // Until the pod is known, an earlier agent may have had somebody's job in any container.
  if (!containers_.known()) return false;
  const bool earlier_clears = containers_.has_inherited() && leftovers_.earlier_clears(request.uid);
  if (earlier_clears || containers_.is_clearing(request.uid)) return false;
  if (request.any_image) {
    if (Container* container = containers_.for_probe()) {
      ready(*container, std::move(waiting), "any", {}, EventKind::assigned, now);
      return true;
    }
  }
  if (!request.any_image) {
    if (Container* container = containers_.reserved_for(request)) {
      const Reserved reserved = std::get<Reserved>(container->state);
      if (const auto placed = place_sized(*container, waiting, reserved.how, reserved.bound_in, now))
        return *placed;
      ready(*container, std::move(waiting), reserved.how, reserved.bound_in, EventKind::assigned, now);
      return true;
    }
  }
  // While a container is being resized, the idle ones are resized too.
  if (resizes_.under_way()) return false;
  if (!request.any_image) {
    if (Container* container = containers_.warm_for(asked, request.owner)) {
      const std::string how(container->came_by);
      if (const auto placed = place_sized(*container, waiting, how, {}, now)) return *placed;
      ready(*container, std::move(waiting), how, {}, EventKind::assigned, now);
      return true;
    }
    if (join_renewal(waiting, asked, now)) return true;
  }
  if (!request.any_image) {
    if (const Doubts::Doubt* doubt = health_.doubts.waits(asked, now)) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(doubt->until - now).count();
      answers_.fail(
          request, wire::Fault::infrastructure,
          fmt::format("this pilot tries the image again in {} seconds; failures so far: {}, the last one: {}",
                      seconds, doubt->failures, doubt->message));
      return true;
    }
  }
  if (!beside_.may_switch(asked, now)) {
    waiting.beside = true;
    return false;
  }
  // If nobody has pulled the image beside the pod, a container pulls it.
  if (beside_.pulls.find(asked) != nullptr) waiting.beside = false;
  Container* container = spares_.least_wanted_idle(now);
  // A pilot job needs little itself, and its own jobs are to have the larger containers.
  if (request.pilot) container = containers_.smallest_idle(container, now);
  if (container == nullptr) container = containers_.coldest(State::broken, now);
  if (container == nullptr) return false;
  const Resizes::Fit fit = resizes_.fit_of(*container, request);
  if (fit == Resizes::Fit::wait) return false;
  if (fit == Resizes::Fit::too_small) {
    fail_too_small(request);
    return true;
  }
  begin(*container, asked, std::move(waiting), EventKind::assigned, now);
  return true;
}

// Lets the request wait for a switch to its image that is already under way, if there is one.
bool Core::join_renewal(Waiting& waiting, const Image& asked, Time now) {
  Container* container = containers_.spare_for(asked);
  if (container == nullptr) return false;
  auto& step = std::get<Switching>(container->state);
  step.spare = false;
  step.deadline = waiting.arrived + policy_.bind_deadline;
  step.waiting = std::move(waiting);
  if (image_commands_.ask(*step.waiting, now) == ImageCommands::Command::failed) step.waiting.reset();
  return true;
}

// Gives the request its container, which has the image asked for by now.
void Core::ready(Container& container, Waiting waiting, std::string_view how, microseconds before,
                 EventKind event, Time now) {
  if (event != EventKind::known) {
    // The glue of the pilot's own image would not have started.
    if (container.empty && !waiting.request.any_image) {
      containers_.become(container, Idle{}, event);
      return answers_.fail(waiting.request, wire::Fault::user, std::string(k_no_files));
    }
    // If another container is being resized, this one has to wait for its size.
    const bool small = resizes_.too_small(container, waiting.request);
    const bool unlike = small || container.size.limit != waiting.request.slot_size;
    const bool later = unlike && resizes_.fit_of(container, waiting.request) == Resizes::Fit::wait;
    if (later || small) containers_.become(container, Idle{}, event);
    if (later) return queue_.put_back(std::move(waiting));
    if (small) return fail_too_small(waiting.request);
  }
  switch (image_commands_.ask(waiting, now)) {
    case ImageCommands::Command::known:
      break;
    case ImageCommands::Command::asked:
      return containers_.become(container, Asking{std::move(waiting), std::string(how), before}, event);
    case ImageCommands::Command::failed:
      return containers_.become(container, Idle{}, event);
  }
  const Request& request = waiting.request;
  const auto bound_in = before + duration_cast<microseconds>(now - waiting.arrived);
  if (request.verb != wire::Verb::test) return launch(container, waiting, how, bound_in, event, now);
  containers_.become(container, Reserved{request, std::string(how), bound_in, now + policy_.reservation},
                     event);
  actions_.note("event=prepared job={} owner={} image={} container={} how={} bind_ms={:.1f}",
                word(request.job), word(request.owner), word(request.asked), container.name, how,
                static_cast<double>(bound_in.count()) / 1000);
  actions_.add(Answer{request.client, ExitStatus::exited(0)});
}

void Core::launch(Container& container, const Waiting& waiting, std::string_view how, microseconds bound_in,
                  EventKind event, Time now) {
  const Request& request = waiting.request;
  Running running;
  running.job.request = request;
  running.job.id = actions_.next_job();
  running.job.container = container.name;
  running.job.how = how;
  running.job.bound_in = bound_in;
  running.job.pulse.next = now + policy_.beat;
  containers_.become(container, std::move(running), event);
  container.last_used = now;
  container.came_by = "warm";
  container.kept.reset();
  if (!request.any_image) {
    answers_.bound(how, bound_in);
    container.owner = request.owner;
    spares_.ran(references_.asked_by(request), request.owner);
    if (policy_.reuse == Policy::Reuse::never) container.spoiled = true;
  }
  actions_.add(Launch{container.glue, container.job()->id, request.client, waiting.argv});
  actions_.note("event=bound job={} owner={} image={} container={} how={} bind_ms={:.1f} uid={}",
                word(request.job), word(request.owner), word(request.asked), container.name, how,
                static_cast<double>(bound_in.count()) / 1000, request.uid);
}

void Core::on_image_known(ClientId client, const registry::ImageCommand& command, Time now) {
  Waiting* waiting = queue_.find(client);
  if (!waiting || waiting->exact_name.empty() || !waiting->argv.empty()) return;
  if (!image_commands_.learn(*waiting, command)) {
    queue_.drop(client, EventKind::unknown);
    return settle(now);
  }
  for (Container& container : containers_) {
    auto* asking = std::get_if<Asking>(&container.state);
    if (asking == nullptr || asking->waiting.request.client != client) continue;
    Asking known = std::move(*asking);
    return ready(container, std::move(known.waiting), known.how, known.before, EventKind::known, now);
  }
}

void Core::on_image_unknown(ClientId client, wire::Fault fault, const std::string& message, Time now) {
  const Waiting* waiting = queue_.find(client);
  if (!waiting || waiting->exact_name.empty() || !waiting->argv.empty()) return;
  const Request request = waiting->request;
  queue_.drop(client, EventKind::unknown);
  answers_.fail(request, fault, message);
  settle(now);
}

}  // namespace glidepod::agent
