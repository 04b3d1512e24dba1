// Containers beyond the jobs at a time, made ready while nobody waits for images that are likely to be asked
// for (likely.hpp).

#include <algorithm>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

Free Core::as_free(const Container& container) const {
  return {container.image, container.owner, !container.spoiled && !container.inherited};
}

// A container that is being made ready for this image by itself.
Container* Core::renewed_for(const Request& request) {
  const auto found = std::ranges::find_if(containers_, [&](const Container& container) {
    const auto* step = std::get_if<Switching>(&container.state);
    return step != nullptr && step->spare && step->target == goal_of(request);
  });
  return found == containers_.end() ? nullptr : &*found;
}

// What the next jobs miss least; without spares, what was used longest ago.
Container* Core::least_wanted_idle() {
  if (policy_.spares == 0) return coldest(State::idle);
  std::vector<Container*> idle;
  for (Container& container : containers_)
    if (container.kind() == State::idle) idle.push_back(&container);
  if (idle.empty()) return nullptr;
  std::ranges::stable_sort(idle, {}, &Container::last_used);
  std::vector<Free> free;
  for (const Container* container : idle) free.push_back(as_free(*container));
  return idle[least_wanted(lately_.all(), free)];
}

// One at a time, and only while no job waits for anything: the kubelet changes the containers of a pod one
// after the other. Containers enough for the jobs that can come stay as they are.
void Core::renew(Time now) {
  if (policy_.spares == 0 || draining_ || given_up_ || !pod_known_ || !queue_.empty()) return;
  std::vector<std::size_t> idle;
  std::vector<Free> free;
  int jobs = 0;
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    const Container& container = containers_[i];
    if (container.kind() == State::switching || container.kind() == State::asking) return;
    if (container.job() != nullptr || container.kind() == State::reserved) ++jobs;
    if (container.kind() != State::idle) continue;
    idle.push_back(i);
    free.push_back(as_free(container));
  }
  const int can_come = std::max(0, static_cast<int>(containers_.size()) - policy_.spares - jobs);
  if (static_cast<int>(idle.size()) <= can_come) return;
  const auto may_have = [this, now](const std::string& image) {
    const auto failed = not_renewed_.find(image);
    return known_.contains(image) && (failed == not_renewed_.end() || now >= failed->second);
  };
  const auto renewal = likeliest(lately_.all(), free, may_have);
  if (!renewal) return;
  Container& container = containers_[idle[renewal->free]];
  if (!container.settled()) return;
  note("event=renew container={} image={}", container.name, word(renewal->image));
  begin(container, renewal->image, std::nullopt, EventKind::likely, now);
  if (auto* step = std::get_if<Switching>(&container.state)) step->spare = true;
}

// It waits for what is under way already.
bool Core::join_renewal(Waiting& waiting, Time now) {
  Container* container = renewed_for(waiting.request);
  if (container == nullptr) return false;
  auto& step = std::get<Switching>(container->state);
  step.spare = false;
  step.deadline = waiting.arrived + policy_.bind_deadline;
  step.waiting = std::move(waiting);
  if (ask(*step.waiting, now) == Command::failed) step.waiting.reset();
  return true;
}

}  // namespace glidepod::agent
