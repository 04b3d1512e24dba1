// Requests, and which container serves each.

#include <algorithm>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using std::chrono::duration_cast;
using std::chrono::microseconds;

void Core::dispatch(Time now) {
  for (std::size_t i = 0; i < queue_.size();) {
    if (place(queue_[i], now))
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

namespace {
bool is_reserved_for(const Container& container, const Request& request) {
  const auto* reserved = std::get_if<Reserved>(&container.state);
  if (reserved == nullptr) return false;
  // During the test the job's ad may not have been there yet. So the owner may be known better now.
  const Request& by = reserved->request;
  const bool for_owner = container.owner.empty() || container.owner == request.owner;
  // Each job of a pilot job has a user of its own, from its launch on.
  const bool of_user = by.outer == request.outer && (by.uid == request.uid || by.outer != 0);
  return of_user && by.image == request.image && for_owner;
}
}  // namespace

Container* Core::reserved_for(const Request& request) {
  const auto found = std::ranges::find_if(
      containers_, [&](const Container& container) { return is_reserved_for(container, request); });
  return found == containers_.end() ? nullptr : &*found;
}

bool Core::has_reserved_for(const Request& request) const {
  return std::ranges::any_of(containers_,
                             [&](const Container& container) { return is_reserved_for(container, request); });
}

// A slot has one job at a time. If it asks for something else, it has given up the job that it had tested.
void Core::free_reservations(const Request& request) {
  if (request.any_image || request.outer != 0) return;
  for (Container& container : containers_) {
    const auto* reserved = std::get_if<Reserved>(&container.state);
    if (reserved == nullptr || reserved->request.outer != 0 || reserved->request.uid != request.uid) continue;
    const std::string& slot = reserved->request.slot;
    const bool other_slot = !slot.empty() && !request.slot.empty() && slot != request.slot;
    if (!other_slot && !is_reserved_for(container, request)) become(container, Idle{}, EventKind::assigned);
  }
}

// The image that the request's container is to have, in the form of Container::image. A job that asks for the
// pilot's own image gets the home image.
std::string Core::goal_of(const Request& request) const {
  return request.any_image || references_.is_home(request.image) ? std::string() : request.image;
}

Container* Core::warm_for(const Request& request) {
  Container* found = nullptr;
  for (Container& container : containers_) {
    if (container.kind() != State::idle || container.spoiled || container.inherited) continue;
    if (container.image != goal_of(request)) continue;
    if (!container.owner.empty() && container.owner != request.owner) continue;
    // A container that the kubelet may still stop is better than none.
    if (found == nullptr || (container.settled() && !found->settled())) found = &container;
  }
  return found;
}

// The one that was used longest ago. One that is kept for a claim comes last: a slot that asks has no part in
// that claim, so there is another one for it.
Container* Core::coldest(State state, Time now) {
  Container* found = nullptr;
  for (Container& container : containers_) {
    if (container.kind() != state) continue;
    const auto rank = [now](const Container& one) { return std::pair(one.is_kept(now), one.last_used); };
    if (found == nullptr || rank(container) < rank(*found)) found = &container;
  }
  return found;
}

// The container for a pilot job. It needs little itself, and its own jobs are to have the larger containers.
Container* Core::smallest_idle(Time now) {
  const auto rank = [now](const Container& container) {
    return std::pair(container.is_kept(now),
                     container.memory_limit_kib > 0 ? container.memory_limit_kib : INT64_MAX);
  };
  Container* found = least_wanted_idle(now);
  for (Container& container : containers_)
    if (container.kind() == State::idle && rank(container) < rank(*found)) found = &container;
  return found;
}

// The container for a probe, which runs a program of the pilot's: any container that no job has used.
Container* Core::for_probe() {
  Container* found = nullptr;
  for (Container& container : containers_) {
    if (container.kind() != State::idle || !container.owner.empty() || container.spoiled ||
        container.inherited)
      continue;
    if (found == nullptr || container.last_used < found->last_used) found = &container;
  }
  return found;
}

// Finds a container for the request; false if the request has to wait.
bool Core::place(Waiting& waiting, Time now) {
  const Request& request = waiting.request;
  // Until the pod is known, an earlier agent may have had somebody's job in any container.
  if (!pod_.known) return false;
  if (is_clearing(request.uid)) return false;
  if (request.any_image) {
    if (Container* container = for_probe()) {
      ready(*container, std::move(waiting), "any", {}, EventKind::assigned, now);
      return true;
    }
  }
  if (!request.any_image) {
    if (Container* container = reserved_for(request)) {
      const Reserved reserved = std::get<Reserved>(container->state);
      if (const auto placed = place_sized(*container, waiting, reserved.how, reserved.bound_in, now))
        return *placed;
      ready(*container, std::move(waiting), reserved.how, reserved.bound_in, EventKind::assigned, now);
      return true;
    }
  }
  // While a container is being resized, the idle ones are resized too.
  if (resizes_.current) return false;
  if (!request.any_image) {
    if (Container* container = warm_for(request)) {
      if (const auto placed = place_sized(*container, waiting, "warm", {}, now)) return *placed;
      ready(*container, std::move(waiting), "warm", {}, EventKind::assigned, now);
      return true;
    }
    if (join_renewal(waiting, now)) return true;
  }
  if (!request.any_image) {
    if (const Doubts::Doubt* doubt = health_.doubts.waits(goal_of(request), now)) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(doubt->until - now).count();
      fail(
          request, wire::Fault::infrastructure,
          fmt::format("this pilot tries the image again in {} seconds; failures so far: {}, the last one: {}",
                      seconds, doubt->failures, doubt->message));
      return true;
    }
  }
  if (!request.any_image && !may_switch(goal_of(request), now)) {
    waiting.beside = true;
    return false;
  }
  // If nobody has pulled the image beside the pod, a container pulls it.
  if (pulls_.all().contains(goal_of(request))) waiting.beside = false;
  Container* container = request.pilot ? smallest_idle(now) : least_wanted_idle(now);
  if (container == nullptr) container = coldest(State::broken, now);
  if (container == nullptr) return false;
  const Fit fit = fit_of(*container, request);
  if (fit == Fit::wait) return false;
  if (fit == Fit::too_small) {
    fail_too_small(request);
    return true;
  }
  std::string goal = goal_of(request);
  begin(*container, std::move(goal), std::move(waiting), EventKind::assigned, now);
  return true;
}

// Gives the request its container, which has the wanted image by now.
void Core::ready(Container& container, Waiting waiting, std::string_view how, microseconds before,
                 EventKind event, Time now) {
  if (event != EventKind::known) {
    // If another container is being resized, this one has to wait for its size.
    const bool small = too_small(container, waiting.request);
    const bool unlike = small || container.size.limit != waiting.request.slot_size;
    const bool later = unlike && fit_of(container, waiting.request) == Fit::wait;
    if (later || small) become(container, Idle{}, event);
    if (later) return queue_.push_front(std::move(waiting));
    if (small) return fail_too_small(waiting.request);
  }
  switch (ask(waiting, now)) {
    case Command::known:
      break;
    case Command::asked:
      return become(container, Asking{std::move(waiting), std::string(how), before}, event);
    case Command::failed:
      return become(container, Idle{}, event);
  }
  const Request& request = waiting.request;
  const auto bound_in = before + duration_cast<microseconds>(now - waiting.arrived);
  if (request.verb != wire::Verb::test) return launch(container, waiting, how, bound_in, event, now);
  become(container, Reserved{request, std::string(how), bound_in, now + policy_.reservation}, event);
  actions_.note("event=prepared job={} owner={} image={} container={} how={} bind_ms={:.1f}",
                word(request.job), word(request.owner), word(request.image), container.name, how,
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
  become(container, std::move(running), event);
  container.last_used = now;
  container.kept.reset();
  if (!request.any_image) {
    health_.binds.bound(how, bound_in);
    container.owner = request.owner;
    readiness_.ran(goal_of(request), request.owner);
    if (policy_.reuse == Policy::Reuse::never) container.spoiled = true;
  }
  actions_.add(Launch{container.glue, container.job()->id, request.client, waiting.argv});
  actions_.note("event=bound job={} owner={} image={} container={} how={} bind_ms={:.1f} uid={}",
                word(request.job), word(request.owner), word(request.image), container.name, how,
                static_cast<double>(bound_in.count()) / 1000, request.uid);
}

}  // namespace glidepod::agent
