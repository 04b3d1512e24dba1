#include "pilot-agent/core/queue.hpp"

#include <algorithm>

namespace glidepod::agent {

void Queue::serve(const std::function<bool(Waiting&)>& place) {
  for (std::size_t i = 0; i < all_.size();) {
    if (place(all_[i]))
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

std::vector<Request> Queue::take_due(Time now) {
  std::vector<Request> due;
  std::erase_if(all_, [&](const Waiting& waiting) {
    if (now < waiting.arrived + policy_.bind_deadline) return false;
    due.push_back(waiting.request);
    return true;
  });
  return due;
}

std::optional<Time> Queue::next_deadline() const {
  const auto first = std::ranges::min_element(all_, {}, &Waiting::arrived);
  return first == all_.end() ? std::nullopt : std::optional(first->arrived + policy_.bind_deadline);
}

Waiting* Queue::find(ClientId client) {
  if (Waiting* waiting = containers_.waiting_of(client)) return waiting;
  const auto found = std::ranges::find_if(
      all_, [client](const Waiting& waiting) { return waiting.request.client == client; });
  return found == all_.end() ? nullptr : &*found;
}

void Queue::drop(ClientId client, EventKind event) {
  std::erase_if(all_, [client](const Waiting& waiting) { return waiting.request.client == client; });
  containers_.drop_waiting(client, event);
}

std::vector<Request> Queue::unbegun(const std::function<bool(const Request&)>& which) const {
  std::vector<Request> found;
  const auto add = [&](const Request& request) {
    if (which(request)) found.push_back(request);
  };
  for (const Waiting& waiting : all_) add(waiting.request);
  for (const Container& container : containers_)
    if (const Request* request = container.waiting()) add(*request);
  return found;
}

}  // namespace glidepod::agent
