#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "lib/base/loop.hpp"

namespace glidepod::simulate {

// Simulated time: what is to happen, in order. Two events of one instant happen in the order they were asked.
class Clock {
 public:
  SteadyTime now() const { return now_; }
  std::uint64_t steps() const { return steps_; }
  void at(SteadyTime when, std::function<void()> what) {
    events_.push_back({std::max(when, now_), ++last_, std::move(what)});
    std::ranges::push_heap(events_, later);
  }
  void after(Milliseconds wait, std::function<void()> what) { at(now_ + wait, std::move(what)); }
  // The time of the next event; there must be one.
  bool empty() const { return events_.empty(); }
  SteadyTime next_at() const { return events_.front().when; }
  // Nothing more happens before then.
  void pass_to(SteadyTime when) { now_ = std::max(now_, when); }
  void step() {
    std::ranges::pop_heap(events_, later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.when;
    ++steps_;
    event.what();
  }

 private:
  struct Event {
    SteadyTime when;
    std::uint64_t order = 0;
    std::function<void()> what;
  };
  static bool later(const Event& a, const Event& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  SteadyTime now_{std::chrono::seconds(1000)};
  std::uint64_t last_ = 0, steps_ = 0;
  std::vector<Event> events_;
};

}  // namespace glidepod::simulate
