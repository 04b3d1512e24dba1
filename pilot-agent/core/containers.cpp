#include "pilot-agent/core/containers.hpp"

#include <algorithm>

namespace glidepod::agent {

namespace {
Container* first_of(std::deque<Container>& all, const auto& which) {
  const auto found = std::ranges::find_if(all, which);
  return found == all.end() ? nullptr : &*found;
}

bool is_reserved_for(const Container& container, const Request& request) {
  const auto* reserved = std::get_if<Reserved>(&container.state);
  if (reserved == nullptr) return false;
  // During the test the job's ad may not have been there yet. So the owner may be known better now.
  const Request& by = reserved->request;
  const bool for_owner = container.owner.empty() || container.owner == request.owner;
  // Each job of a pilot job has a user of its own, from its launch on.
  const bool of_user = by.outer == request.outer && (by.uid == request.uid || by.outer != 0);
  return of_user && by.asked == request.asked && for_owner;
}
}  // namespace

Containers::Containers(Actions& actions, const std::vector<std::string>& names)
    : actions_(actions), names_given_(!names.empty()) {
  for (const std::string& name : names) add(name);
}

Container& Containers::add(std::string_view name) {
  Container& container = all_.emplace_back();
  container.name = name;
  return container;
}

void Containers::begin(const kube::Pod& pod) {
  for (const kube::ContainerSpec& spec : pod.containers)
    if (!names_given_ && is_payload(pod, spec) && find(spec.name) == nullptr) add(spec.name);
  known_ = true;
}

bool Containers::is_news(const kube::Pod& pod) {
  const std::int64_t version = kube::version_number(pod.resource_version);
  if (version < version_) return false;
  version_ = version;
  return true;
}

void Containers::become(Container& container, AnyState state, EventKind event) {
  const Transition transition{container.kind(), event, static_cast<State>(state.index())};
  container.state = std::move(state);
  if (!allowed(transition))
    actions_.warn("event=unexpected_transition container={} from={} by={} to={}", container.name,
                  name_of(transition.from), name_of(event), name_of(transition.to));
  if (observer_) observer_(container, transition);
}

const Container* Containers::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Container::name);
  return found == all_.end() ? nullptr : &*found;
}

Container* Containers::find(std::string_view name) {
  return first_of(all_, [name](const Container& container) { return container.name == name; });
}

Container* Containers::of_glue(GlueId glue) {
  if (glue == 0) return nullptr;
  return first_of(all_, [glue](const Container& container) { return container.glue == glue; });
}

Container* Containers::of_job(GlueId glue, JobId job) {
  Container* container = of_glue(glue);
  const Job* own = container != nullptr ? container->job() : nullptr;
  return own != nullptr && own->id == job ? container : nullptr;
}

Container* Containers::of_clearing(GlueId glue, JobId id) {
  Container* container = of_glue(glue);
  const auto* own = container != nullptr ? std::get_if<Clearing>(&container->state) : nullptr;
  return own != nullptr && own->id == id ? container : nullptr;
}

Container* Containers::of_client(ClientId client) {
  if (client == 0) return nullptr;
  return first_of(all_, [client](const Container& container) {
    return container.job() != nullptr && container.job()->request.client == client;
  });
}

Container* Containers::of_patch(std::uint64_t attempt) {
  return first_of(all_, [attempt](const Container& container) {
    const auto* step = std::get_if<Switching>(&container.state);
    return step != nullptr && step->attempt == attempt;
  });
}

std::optional<State> Containers::state_of(std::string_view name) const {
  const Container* container = find(name);
  return container != nullptr ? std::optional(container->kind()) : std::nullopt;
}

std::string Containers::stranger(const Container& container, const std::string& instance) const {
  for (const Container& other : all_) {
    if (other.last_instance.empty()) continue;
    // If ids are known at all, each payload container has one. A process in the pilot container has none.
    if (instance.empty()) return "the sender is in no payload container";
    if (&other != &container && instance == other.last_instance)
      return fmt::format("the sender is in container {}", other.name);
  }
  return {};
}

Waiting* Containers::waiting_of(ClientId client) {
  const auto is_it = [client](const Waiting& waiting) { return waiting.request.client == client; };
  for (Container& container : all_) {
    if (auto* step = std::get_if<Switching>(&container.state))
      if (step->waiting && is_it(*step->waiting)) return &*step->waiting;
    if (auto* asking = std::get_if<Asking>(&container.state))
      if (is_it(asking->waiting)) return &asking->waiting;
  }
  return nullptr;
}

void Containers::drop_waiting(ClientId client, EventKind event) {
  for (Container& container : all_) {
    // The switch goes on: the next job may want that image, and stopping half-way would gain nothing.
    if (auto* step = std::get_if<Switching>(&container.state))
      if (step->waiting && step->waiting->request.client == client) step->waiting.reset();
    if (const auto* asking = std::get_if<Asking>(&container.state))
      if (asking->waiting.request.client == client) become(container, Idle{}, event);
  }
}

Container* Containers::reserved_for(const Request& request) {
  return first_of(all_, [&](const Container& container) { return is_reserved_for(container, request); });
}

// A slot has one job at a time. If it asks for something else, it has given up the job that it had tested.
void Containers::free_reservations(const Request& request) {
  if (request.any_image || request.outer != 0) return;
  for (Container& container : all_) {
    const auto* reserved = std::get_if<Reserved>(&container.state);
    if (reserved == nullptr || reserved->request.outer != 0 || reserved->request.uid != request.uid) continue;
    const std::string& slot = reserved->request.slot;
    const bool other_slot = !slot.empty() && !request.slot.empty() && slot != request.slot;
    if (!other_slot && !is_reserved_for(container, request)) become(container, Idle{}, EventKind::assigned);
  }
}

Container* Containers::warm_for(const Image& image, const std::string& owner) {
  Container* found = nullptr;
  for (Container& container : all_) {
    if (container.kind() != State::idle || container.spoiled || container.inherited) continue;
    if (container.proven != image) continue;
    if (!container.owner.empty() && container.owner != owner) continue;
    // A container that the kubelet may still stop is better than none.
    if (found == nullptr || (container.settled() && !found->settled())) found = &container;
  }
  return found;
}

Container* Containers::spare_for(const Image& image) {
  return first_of(all_, [&image](const Container& container) {
    const auto* step = std::get_if<Switching>(&container.state);
    return step != nullptr && step->spare && step->asked == image;
  });
}

// One that is kept for a claim comes last: a slot that asks has no part in that claim, so there is another
// one for it.
Container* Containers::coldest(State state, Time now) {
  Container* found = nullptr;
  for (Container& container : all_) {
    if (container.kind() != state) continue;
    const auto rank = [now](const Container& one) { return std::pair(one.is_kept(now), one.last_used); };
    if (found == nullptr || rank(container) < rank(*found)) found = &container;
  }
  return found;
}

Container* Containers::smallest_idle(Container* first, Time now) {
  const auto rank = [now](const Container& container) {
    return std::pair(container.is_kept(now),
                     container.memory_limit_kib > 0 ? container.memory_limit_kib : INT64_MAX);
  };
  Container* found = first;
  for (Container& container : all_)
    if (container.kind() == State::idle && rank(container) < rank(*found)) found = &container;
  return found;
}

// The container for a probe, which runs a program of the pilot's: any container that no job has used.
Container* Containers::for_probe() {
  Container* found = nullptr;
  for (Container& container : all_) {
    if (container.kind() != State::idle || !container.owner.empty() || container.spoiled ||
        container.inherited)
      continue;
    if (found == nullptr || container.last_used < found->last_used) found = &container;
  }
  return found;
}

// The container for the test switch, if possible one whose image no job wants.
Container* Containers::for_test(Time now) {
  Container* found = nullptr;
  for (Container& container : all_) {
    if (container.kind() != State::idle) continue;
    const bool better = found == nullptr || container.last_used < found->last_used;
    const bool home = container.proven.is_home();
    if (found == nullptr || (home != found->proven.is_home() ? home : better)) found = &container;
  }
  return found != nullptr ? found : coldest(State::broken, now);
}

// The user decides about access. The sandbox only tells this user's jobs apart.
const Container* Containers::to_visit(const Visit& visit) const {
  const auto may_enter = [&](const Container& container) {
    const auto* running = std::get_if<Running>(&container.state);
    if (running == nullptr || running->job.goodbye()) return false;
    const Request& request = running->job.request;
    return !request.any_image && request.client != 0 && request.uid == visit.uid && !visit.sandbox.empty() &&
           request.sandbox == visit.sandbox;
  };
  const auto found = std::ranges::find_if(all_, may_enter);
  return found == all_.end() ? nullptr : &*found;
}

std::optional<PilotJob> Containers::pilot_in(std::string_view instance, uid_t uid) const {
  if (instance.empty()) return std::nullopt;
  const auto found = std::ranges::find(all_, instance, &Container::instance);
  if (found == all_.end() || found->kind() != State::running) return std::nullopt;
  const Job& job = *found->job();
  if (!job.request.pilot || job.request.uid != uid) return std::nullopt;
  return PilotJob{job.id, job.request};
}

std::optional<PilotJob> Containers::pilot_of(JobId id) const {
  const auto found = std::ranges::find_if(all_, [id](const Container& container) {
    return container.job() != nullptr && container.job()->id == id && id != 0;
  });
  if (found == all_.end()) return std::nullopt;
  return PilotJob{id, found->job()->request};
}

bool Containers::has_inner(JobId outer) const {
  return std::ranges::any_of(all_, [outer](const Container& container) {
    return container.job() != nullptr && container.job()->request.outer == outer;
  });
}

// A pilot job has the pod's payload containers for itself, so no other job will free one later.
Result<void> Containers::check_inner(const Request& request, std::size_t queued) const {
  const auto is_outer = [&](const Container& container) {
    return container.kind() == State::running && container.job()->id == request.outer;
  };
  const auto is_reserved = [&](const Container& container) { return is_reserved_for(container, request); };
  const auto is_taken = [](const Container& container) {
    return container.busy() || container.waiting() != nullptr || container.kind() == State::reserved;
  };
  if (std::ranges::none_of(all_, is_outer)) return error("the pilot job that asks has ended");
  // A container that is reserved for this request does not count as taken.
  if (request.verb != wire::Verb::test && std::ranges::any_of(all_, is_reserved)) return {};
  const auto taken = static_cast<std::size_t>(std::ranges::count_if(all_, is_taken));
  if (taken + queued < all_.size()) return {};
  return error(
      "all {} payload containers of this pod have a job, the pilot jobs themselves included; "
      "have the inner pilot run fewer jobs at a time",
      all_.size());
}

bool Containers::busy() const {
  return std::ranges::any_of(all_, &Container::busy);
}

bool Containers::has_job_of(uid_t uid) const {
  return std::ranges::any_of(all_, [uid](const Container& container) {
    if (const Job* job = container.job()) return job->request.uid == uid;
    if (const auto* reserved = std::get_if<Reserved>(&container.state)) return reserved->request.uid == uid;
    const Request* waiting = container.waiting();
    return waiting != nullptr && waiting->uid == uid;
  });
}

bool Containers::is_clearing(uid_t uid) const {
  return std::ranges::any_of(all_, [uid](const Container& container) {
    const auto* clearing = std::get_if<Clearing>(&container.state);
    return clearing != nullptr && clearing->left.user.uid == uid;
  });
}

bool Containers::has_inherited() const {
  return std::ranges::any_of(all_, &Container::inherited);
}

bool Containers::has_sidecars() const {
  return std::ranges::any_of(all_, &Container::sidecar);
}

bool Containers::expects_births() const {
  return std::ranges::any_of(all_, [](const Container& container) {
    const auto* absent = std::get_if<Absent>(&container.state);
    return absent != nullptr && absent->unborn;
  });
}

namespace {
// Whether the kubelet is going to stop the connected glue: a patch is on its way, or the kubelet has yet to
// act on one.
bool is_told(const Container& container) {
  // Nobody knows what this container will run, nor whether it will be stopped for that.
  if (container.kind() == State::broken) return true;
  const auto* step = std::get_if<Switching>(&container.state);
  return step != nullptr && step->attempt != 0 && step->connected == container.glue &&
         (step->leg == Switching::Leg::home || step->leg == Switching::Leg::target);
}
}  // namespace

std::vector<std::string> Containers::missing() const {
  std::vector<std::string> names;
  for (const Container& container : all_)
    if (container.glue == 0 || container.stopped || is_told(container)) names.push_back(container.name);
  return names;
}

bool Containers::ending() const {
  return std::ranges::any_of(
      all_, [](const Container& container) { return !container.sidecar && container.glue != 0; });
}

std::vector<std::string> Containers::unended() const {
  std::vector<std::string> names;
  for (const Container& container : all_)
    if (!container.sidecar && (container.glue != 0 || container.stopped)) names.push_back(container.name);
  return names;
}

bool Containers::is_payload(const kube::Pod& pod, const kube::ContainerSpec& spec) const {
  if (names_given_) return find(spec.name) != nullptr;
  const bool glue = !spec.command.empty() && spec.command.front().ends_with("/glue");
  return glue && spec.name != pod.pilot()->name;
}

std::vector<std::string> Containers::others(const kube::Pod& pod) const {
  std::vector<std::string> names;
  for (const kube::ContainerSpec& spec : pod.containers)
    if (!spec.sidecar && !is_payload(pod, spec) && spec.name != pod.pilot()->name) names.push_back(spec.name);
  return names;
}

bool Containers::needs_restarts(const kube::Pod& pod) const {
  return std::ranges::any_of(pod.containers, [&](const kube::ContainerSpec& spec) {
    return !spec.sidecar && is_payload(pod, spec);
  });
}

}  // namespace glidepod::agent
