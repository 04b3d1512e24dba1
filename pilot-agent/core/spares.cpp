#include "pilot-agent/core/spares.hpp"

#include <algorithm>

#include "lib/kube/pulls.hpp"

namespace glidepod::agent {

namespace {

constexpr std::size_t k_together = 4;  // containers that are made ready at the same time

Free as_free(const Container& container) {
  return {container.proven, container.owner, !container.spoiled && !container.inherited, false};
}

}  // namespace

// A job may also name the pilot's own image.
void Spares::told(const kube::Pod& pod) {
  queued_.clear();
  for (const auto& [name, share] : pod.likely_images) {
    const bool own = name == references_.home().image;
    queued_.push_back({own ? Image::home() : Image(name), share});
  }
}

void Spares::announce(Request job, Time now) {
  announced.add(std::move(job), now);
  if (policy_.spares > 0) calm_at_ = now + policy_.renewal_calm;
}

Container* Spares::least_wanted_idle(Time now) {
  Container* coldest_one = containers_.coldest(State::idle, now);
  // If even that one is kept for a claim, all are.
  if (coldest_one == nullptr || coldest_one->is_kept(now)) return coldest_one;
  std::vector<Container*> idle;
  for (Container& container : containers_)
    if (container.kind() == State::idle && !container.is_kept(now)) idle.push_back(&container);
  const auto awaited = announced.awaited();
  const auto is_awaited = [&awaited](const Container* container) { return awaited.contains(container); };
  if (!std::ranges::all_of(idle, is_awaited)) std::erase_if(idle, is_awaited);
  std::ranges::stable_sort(idle, {}, &Container::last_used);
  if (policy_.spares == 0) return idle.front();
  std::vector<Free> free(idle.size());
  std::ranges::transform(idle, free.begin(), [](const Container* container) { return as_free(*container); });
  return idle[least_wanted(weights(), free)];
}

// Only while no job waits for anything, since the kubelet changes the containers of a pod one after the
// other. A few are changed together: the kubelet looks at the pod about once a second, and then makes all
// changes that it has heard of.
std::optional<Spares::Next> Spares::next(Time now) {
  if (calm_at_ && now < *calm_at_) return std::nullopt;
  std::vector<Container*> idle;
  std::vector<Free> free, coming;
  int jobs = 0;
  const auto awaited = announced.awaited();
  for (Container& container : containers_) {
    if (container.kind() == State::asking) return std::nullopt;
    if (const auto* step = std::get_if<Switching>(&container.state)) {
      if (!step->spare) return std::nullopt;
      coming.push_back({step->asked, {}, true, true});
    }
    if (container.busy() || container.kind() == State::reserved) ++jobs;
    if (container.kind() != State::idle) continue;
    idle.push_back(&container);
    free.push_back(as_free(container));
    free.back().stays = container.is_kept(now) || awaited.contains(&container);
  }
  const int can_come = std::max(0, static_cast<int>(containers_.size()) - policy_.spares - jobs);
  if (static_cast<int>(idle.size()) <= can_come || coming.size() >= k_together) return std::nullopt;
  free.insert(free.end(), coming.begin(), coming.end());
  const auto may_have = [this](const Image& image) { return references_.knows(image) && may_try(image); };
  const auto renewal = likeliest(weights(), free, may_have);
  if (!renewal || !idle[renewal->free]->settled()) return std::nullopt;
  return Next{idle[renewal->free], renewal->image};
}

std::optional<Spares::Next> Spares::next_announced(Time now,
                                                   const std::function<bool(const Image&)>& may_have) {
  auto image = announced.unserved([&](const Image& asked) { return may_try(asked) && may_have(asked); });
  Container* container = image ? least_wanted_idle(now) : nullptr;
  if (container == nullptr || container->is_kept(now) || !container->settled() ||
      announced.awaited().contains(container))
    return std::nullopt;
  // The kubelet would wait before it starts the same name again. A job that asks may have no choice.
  if (!references_.knows(*image) && container->ran.contains(image->name())) return std::nullopt;
  return Next{container, *std::move(image)};
}

void Spares::on_time(Time now) {
  announced.on_time(now);
  if (calm_at_ && now >= *calm_at_) calm_at_.reset();
  std::erase_if(not_before_, [now](const auto& failed) { return now >= failed.second; });
}

std::optional<Time> Spares::next_deadline() const {
  auto first = announced.next_deadline();
  if (calm_at_) first = std::min(first.value_or(*calm_at_), *calm_at_);
  for (const auto& [name, until] : not_before_) first = std::min(first.value_or(until), until);
  return first;
}

}  // namespace glidepod::agent
