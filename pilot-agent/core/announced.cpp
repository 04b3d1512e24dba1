#include "pilot-agent/core/announced.hpp"

#include <algorithm>

namespace glidepod::agent {

namespace {
constexpr std::chrono::seconds k_failure_counts{60};
}  // namespace

void Announced::add(Request job, Time now) {
  asks(job, now);
  if (!all_.empty() && all_.size() >= containers_.size()) all_.erase(all_.begin());
  all_.push_back({std::move(job), now + policy_.bind_deadline});
}

std::optional<std::string> Announced::asks(const Request& job, Time now) {
  std::optional<std::string> why;
  const auto is_it = [&job](const One& one) { return one.job.uid == job.uid && one.job.job == job.job; };
  const auto found = std::ranges::find_if(all_, is_it);
  if (found == all_.end()) return why;
  const bool same = references_.asked_by(job) == references_.asked_by(found->job);
  if (same && found->failure && now < found->failure->until) why = std::move(found->failure->why);
  all_.erase(found);
  return why;
}

void Announced::failed(const Image& image, const std::string& why, Time now) {
  for (One& one : all_)
    if (references_.asked_by(one.job) == image) one.failure = {why, now + k_failure_counts};
}

bool Announced::serves(const Container& container, const Request& job) const {
  const Image asked = references_.asked_by(job);
  if (const auto* step = std::get_if<Switching>(&container.state)) return step->spare && step->asked == asked;
  return container.kind() == State::idle && !container.spoiled && !container.inherited &&
         container.proven == asked && (container.owner.empty() || container.owner == job.owner);
}

std::vector<const Container*> Announced::found() const {
  std::vector<const Container*> result;
  for (const One& one : all_) {
    const auto is_it = [&](const Container& container) {
      return serves(container, one.job) && std::ranges::find(result, &container) == result.end();
    };
    const auto container = std::ranges::find_if(containers_, is_it);
    result.push_back(container == containers_.end() ? nullptr : &*container);
  }
  return result;
}

std::set<const Container*> Announced::awaited() const {
  const auto containers = found();
  return {containers.begin(), containers.end()};
}

std::optional<Image> Announced::unserved(const std::function<bool(const Image&)>& may_have) const {
  const auto containers = found();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (containers[i] != nullptr) continue;
    if (Image asked = references_.asked_by(all_[i].job); may_have(asked)) return asked;
  }
  return std::nullopt;
}

std::set<std::string, std::less<>> Announced::names() const {
  std::set<std::string, std::less<>> result;
  for (const One& one : all_)
    if (const Image asked = references_.asked_by(one.job); !asked.is_home()) result.insert(asked.name());
  return result;
}

void Announced::on_time(Time now) {
  std::erase_if(all_, [now](const One& one) { return now >= one.until; });
}

std::optional<Time> Announced::next_deadline() const {
  const auto first = std::ranges::min_element(all_, {}, &One::until);
  return first == all_.end() ? std::nullopt : std::optional(first->until);
}

}  // namespace glidepod::agent
