#include "pilot-agent/core.hpp"

#include <algorithm>
#include <csignal>

#include "lib/base/log.hpp"
#include "pilot-agent/words.hpp"

namespace glidepod::agent {

using std::chrono::duration_cast;
using std::chrono::microseconds;

std::string_view name_of(State state) {
  switch (state) {
    case State::absent:
      return "absent";
    case State::idle:
      return "idle";
    case State::switching:
      return "switching";
    case State::reserved:
      return "reserved";
    case State::asking:
      return "asking";
    case State::running:
      return "running";
    case State::draining:
      return "draining";
    case State::broken:
      return "broken";
  }
  return "?";
}

Core::Core(Policy policy, const std::vector<std::string>& containers)
    : policy_(std::move(policy)), names_given_(!containers.empty()) {
  for (const std::string& name : containers) containers_.emplace_back().name = name;
}

Core::Container* Core::find(std::string_view name) {
  const auto found = std::ranges::find(containers_, name, &Container::name);
  return found == containers_.end() ? nullptr : &*found;
}

Core::Container* Core::find_glue(GlueId glue) {
  if (glue == 0) return nullptr;
  const auto found = std::ranges::find(containers_, glue, &Container::glue);
  return found == containers_.end() ? nullptr : &*found;
}

Core::Container* Core::find_client(ClientId client) {
  const auto found = std::ranges::find_if(containers_, [client](const Container& container) {
    return container.running && container.running->request.client == client;
  });
  return found == containers_.end() ? nullptr : &*found;
}

std::optional<State> Core::state_of(std::string_view name) const {
  const auto found = std::ranges::find(containers_, name, &Container::name);
  return found == containers_.end() ? std::nullopt : std::optional(found->state);
}

std::size_t Core::connected() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(containers_, [](const Container& c) { return c.glue != 0; }));
}

void Core::on_bind(Request request, Time now) {
  if (finishing_) return fail(request, wire::Fault::infrastructure, "the pilot is ending");
  queue_.push_back({std::move(request), now});
  dispatch(now);
}

void Core::on_client_gone(ClientId client, Time now) {
  leave_session(client);
  std::erase_if(lost_jobs_, [client](const LostJob& lost) { return lost.request.client == client; });
  drop_waiting(client);
  if (Container* container = find_client(client)) {
    note("event=abandoned job={} container={} action=kill", word(container->running->request.job),
         container->name);
    container->running->request.client = 0;
    container->state = State::draining;
    container->running->signalled = true;
    act(SignalJob{container->glue, container->running->job, SIGKILL});
  }
  for (Container& container : containers_)
    if (container.doubtful && container.doubtful->request.client == client)
      container.doubtful->request.client = 0;
  dispatch(now);
}

void Core::on_client_signal(ClientId client, int number, Time now) {
  if (Container* container = find_client(client)) {
    container->running->signalled = true;
    return act(SignalJob{container->glue, container->running->job, number});
  }
  // No job yet: a signal that ends a process ends the request, as if the job had just begun.
  if (!ends_a_process(number)) return;
  if (find_waiting(client)) act(Answer{client, ExitStatus::signaled(number)});
  on_client_gone(client, now);
}

void Core::dispatch(Time now) {
  if (finishing_) return;
  for (std::size_t i = 0; i < queue_.size();) {
    const Waiting waiting = queue_[i];
    if (place(waiting, now))
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

Core::Container* Core::reserved_for(const Request& request) {
  for (Container& container : containers_) {
    if (container.state != State::reserved) continue;
    // At the test the job's ad may not have been there yet, so the owner may be known better now.
    const Request& by = container.reservation->request;
    const bool for_owner = container.owner.empty() || container.owner == request.owner;
    if (by.uid == request.uid && by.image == request.image && for_owner) return &container;
  }
  return nullptr;
}

Core::Container* Core::warm_for(const Request& request) {
  for (Container& container : containers_) {
    if (container.state != State::idle || container.spoiled || container.image != request.image) continue;
    if (container.owner.empty() || container.owner == request.owner) return &container;
  }
  return nullptr;
}

Core::Container* Core::coldest(State state) {
  Container* found = nullptr;
  for (Container& container : containers_)
    if (container.state == state && (!found || container.last_used < found->last_used)) found = &container;
  return found;
}

// False if the request has to wait.
bool Core::place(const Waiting& waiting, Time now) {
  const Request& request = waiting.request;
  if (request.any_image) {
    Container* container = coldest(State::idle);
    if (!container || !container->settled) return false;
    launch(*container, waiting, "any", duration_cast<microseconds>(now - waiting.arrived), now);
    return true;
  }
  if (!pod_known_) return false;
  if (Container* container = reserved_for(request)) {
    const Reservation reservation = *std::exchange(container->reservation, std::nullopt);
    ready(*container, waiting, reservation.how, reservation.bound_in, now);
    return true;
  }
  if (Container* container = warm_for(request)) {
    ready(*container, waiting, "warm", {}, now);
    return true;
  }
  Container* container = coldest(State::idle);
  if (!container) container = coldest(State::broken);
  if (!container) return false;
  begin(*container, request.image, waiting, now);
  return true;
}

// The container is what the request wants.
void Core::ready(Container& container, Waiting waiting, std::string_view how, microseconds before, Time now) {
  switch (ask(waiting, now)) {
    case Command::known:
      break;
    case Command::asked:
      container.state = State::asking;
      container.asking = Asking{std::move(waiting), std::string(how), before};
      return;
    case Command::failed:
      container.state = State::idle;
      return;
  }
  const Request& request = waiting.request;
  const auto bound_in = before + duration_cast<microseconds>(now - waiting.arrived);
  if (request.verb != wire::Verb::test) return launch(container, waiting, how, bound_in, now);
  container.state = State::reserved;
  container.reservation = Reservation{request, std::string(how), bound_in, now + policy_.reservation};
  note("event=prepared job={} owner={} image={} container={} how={} bind_ms={:.1f}", word(request.job),
       word(request.owner), word(request.image), container.name, how,
       static_cast<double>(bound_in.count()) / 1000);
  act(Answer{request.client, ExitStatus::exited(0)});
}

void Core::launch(Container& container, const Waiting& waiting, std::string_view how, microseconds bound_in,
                  Time now) {
  const Request& request = waiting.request;
  container.running = Running{request, ++last_job_};
  container.state = State::running;
  container.last_used = now;
  if (!request.any_image) {
    container.owner = request.owner;
    if (policy_.reuse == Policy::Reuse::never) container.spoiled = true;
  }
  act(Launch{container.glue, last_job_, request.client, waiting.argv});
  note("event=bound job={} owner={} image={} container={} how={} bind_ms={:.1f} uid={}", word(request.job),
       word(request.owner), word(request.image), container.name, how,
       static_cast<double>(bound_in.count()) / 1000, request.uid);
}

void Core::fail(const Request& request, wire::Fault fault, std::string message) {
  warn("event=bind_failed job={} owner={} image={} fault={} reason={}", word(request.job),
       word(request.owner), word(request.image), fault == wire::Fault::user ? "user" : "infrastructure",
       quoted(message));
  if (request.client != 0) act(Fail{request.client, request.verb, fault, std::move(message)});
}

void Core::on_time(Time now) {
  for (auto waiting = queue_.begin(); waiting != queue_.end();) {
    if (now < waiting->arrived + policy_.bind_deadline) {
      ++waiting;
      continue;
    }
    const Request request = waiting->request;
    waiting = queue_.erase(waiting);
    fail(request, wire::Fault::infrastructure,
         pod_known_ ? fmt::format("no payload container became free in {} s", policy_.bind_deadline.count())
                    : std::string("the Kubernetes API has not been reached yet"));
  }
  for (Container& container : containers_) {
    if (container.reservation && now >= container.reservation->until) {
      container.reservation.reset();
      container.state = State::idle;
    }
    if (container.learning_until && now >= *container.learning_until) container.learning_until.reset();
    if (container.doubtful && now >= container.doubtful->until) settle_doubt(container, false);
    if (container.change) check_switch(container, now);
  }
  give_up_asking(now);
  const auto overdue =
      std::ranges::stable_partition(lost_jobs_, [now](const auto& lost) { return now < lost.until; });
  const std::vector<LostJob> given_up(overdue.begin(), overdue.end());
  lost_jobs_.erase(overdue.begin(), overdue.end());
  for (const LostJob& lost : given_up) settle_lost(lost, nullptr);
  dispatch(now);
}

void Core::finish() {
  finishing_ = true;
  for (const Waiting& waiting : std::exchange(queue_, {}))
    fail(waiting.request, wire::Fault::infrastructure, "the pilot is ending");
  for (const LostJob& lost : std::exchange(lost_jobs_, {})) settle_lost(lost, nullptr);
  for (Container& container : containers_) {
    if (container.change && container.change->waiting)
      fail(container.change->waiting->request, wire::Fault::infrastructure, "the pilot is ending");
    container.change.reset();
    if (const auto asking = std::exchange(container.asking, std::nullopt))
      fail(asking->waiting.request, wire::Fault::infrastructure, "the pilot is ending");
    if (container.doubtful) settle_doubt(container, true);
    if (container.running) act(SignalJob{container.glue, container.running->job, SIGKILL});
    if (container.glue != 0) act(FinishGlue{container.glue});
  }
}

bool Core::watching() const {
  return !lost_jobs_.empty() || std::ranges::any_of(containers_, [](const Container& container) {
    return container.learning_until || (container.change && container.change->patched);
  });
}

std::optional<Time> Core::next_deadline() const {
  std::optional<Time> first;
  const auto consider = [&first](std::optional<Time> time) {
    if (time && (!first || *time < *first)) first = time;
  };
  if (finishing_) return first;
  for (const Waiting& waiting : queue_) consider(waiting.arrived + policy_.bind_deadline);
  for (const LostJob& lost : lost_jobs_) consider(lost.until);
  for (const Container& container : containers_) {
    if (container.reservation) consider(container.reservation->until);
    if (container.asking) consider(container.asking->waiting.arrived + policy_.bind_deadline);
    consider(container.learning_until);
    if (container.doubtful) consider(container.doubtful->until);
    if (!container.change) continue;
    consider(container.change->deadline);
    consider(container.change->pull_deadline);
    consider(container.change->unclear_until);
  }
  return first;
}

}  // namespace glidepod::agent
