// Spare containers. While no request waits, they are made ready for images that jobs are likely to ask for
// (likely.hpp).

#include <algorithm>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

namespace {

constexpr std::size_t k_together = 4;  // containers that are made ready at the same time

}  // namespace

Free Core::as_free(const Container& container) const {
  return {container.proven, container.owner, !container.spoiled && !container.inherited, false};
}

// Takes the images of waiting jobs from the pod's annotation. A job may also name the pilot's own image.
void Core::queue_told(const kube::Pod& pod) {
  std::vector<QueuedImage> queued;
  for (auto& [name, share] : kube::read_likely(pod.likely_images)) {
    const bool own = name == references_.home().image;
    queued.push_back({own ? Image::home() : Image(std::move(name)), share});
  }
  readiness_.told(std::move(queued));
}

// The idle container that the next jobs will miss least; without spares, the one that was used longest ago.
Container* Core::least_wanted_idle(Time now) {
  Container* coldest_one = containers_.coldest(State::idle, now);
  // If even that one is kept for a claim, all are.
  if (policy_.spares == 0 || coldest_one == nullptr || coldest_one->is_kept(now)) return coldest_one;
  std::vector<Container*> idle;
  for (Container& container : containers_)
    if (container.kind() == State::idle && !container.is_kept(now)) idle.push_back(&container);
  std::ranges::stable_sort(idle, {}, &Container::last_used);
  std::vector<Free> free(idle.size());
  std::ranges::transform(idle, free.begin(),
                         [this](const Container* container) { return as_free(*container); });
  return idle[least_wanted(readiness_.weights(), free)];
}

// Makes containers ready, but only while no job waits for anything, since the kubelet changes the containers
// of a pod one after the other. A few are changed together: the kubelet looks at the pod about once a second,
// and then makes all changes that it has heard of.
void Core::renew(Time now) {
  if (policy_.spares == 0 || stage_ != Stage::open || health_.given_up() || !pod_.known || !queue_.empty())
    return;
  while (renew_one(now)) {
  }
}

// Makes one container ready. It leaves enough containers as they are for the jobs that can come.
bool Core::renew_one(Time now) {
  std::vector<std::size_t> idle;
  std::vector<Free> free, coming;
  int jobs = 0;
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    const Container& container = containers_[i];
    if (container.kind() == State::asking) return false;
    if (const auto* step = std::get_if<Switching>(&container.state)) {
      if (!step->spare) return false;
      coming.push_back({step->asked, {}, true, true});
    }
    if (container.job() != nullptr || container.kind() == State::reserved) ++jobs;
    if (container.kind() != State::idle) continue;
    idle.push_back(i);
    free.push_back(as_free(container));
    free.back().stays = container.is_kept(now);
  }
  const int can_come = std::max(0, static_cast<int>(containers_.size()) - policy_.spares - jobs);
  if (static_cast<int>(idle.size()) <= can_come || coming.size() >= k_together) return false;
  free.insert(free.end(), coming.begin(), coming.end());
  const auto may_have = [this](const Image& image) {
    return references_.knows(image) && readiness_.may_try(image);
  };
  const auto renewal = likeliest(readiness_.weights(), free, may_have);
  if (!renewal) return false;
  Container& container = containers_[idle[renewal->free]];
  if (!container.settled()) return false;
  actions_.note("event=renew container={} image={}", container.name, word(renewal->image));
  begin(container, renewal->image, std::nullopt, EventKind::likely, now);
  auto* step = std::get_if<Switching>(&container.state);
  if (step != nullptr) step->spare = true;
  return step != nullptr;
}

// Lets the request wait for a switch to its image that is already under way, if there is one.
bool Core::join_renewal(Waiting& waiting, Time now) {
  Container* container = containers_.spare_for(references_.asked_by(waiting.request));
  if (container == nullptr) return false;
  auto& step = std::get<Switching>(container->state);
  step.spare = false;
  step.deadline = waiting.arrived + policy_.bind_deadline;
  step.waiting = std::move(waiting);
  if (image_commands_.ask(*step.waiting, now) == ImageCommands::Command::failed) step.waiting.reset();
  return true;
}

}  // namespace glidepod::agent
