#include "pilot-agent/core/queue.hpp"

#include <algorithm>

namespace glidepod::agent {

namespace {
constexpr std::string_view k_ending = "the pilot is ending";
constexpr std::string_view k_withdrawn = "the pilot takes no more jobs: an operator has drained it";
}  // namespace

void Queue::close(Stage stage) {
  stage_ = std::max(stage_, stage);
  if (stage == Stage::withdrawn)
    refuse([](const Request& request) { return request.outer == 0; }, k_withdrawn);
  else
    refuse([](const Request&) { return true; }, k_ending);
}

std::string_view Queue::refusal(const Request& request) const {
  if (stage_ >= Stage::draining) return k_ending;
  return stage_ == Stage::withdrawn && request.outer == 0 ? k_withdrawn : std::string_view();
}

void Queue::refuse(const std::function<bool(const Request&)>& which, std::string_view why) {
  for (const Request& request : unbegun(which)) {
    drop(request.client, EventKind::gone);
    answers_.fail(request, wire::Fault::infrastructure, std::string(why));
  }
}

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
