// The part of a Loop that needs no system calls. The simulation of glue links it with a model in place of
// loop.cpp.
#include <algorithm>

#include "lib/base/loop.hpp"

namespace glidepod {

Loop::TimerId Loop::after(Milliseconds delay, std::function<void()> handler) {
  const TimerId id = ++last_timer_;
  timers_.emplace(std::pair(now() + delay, id), std::move(handler));
  return id;
}

void Loop::cancel(TimerId timer) {
  std::erase_if(timers_, [timer](const auto& entry) { return entry.first.second == timer; });
}

int Loop::next_timeout(Milliseconds limit) const {
  if (timers_.empty()) return static_cast<int>(limit.count());
  const auto wait = std::chrono::ceil<Milliseconds>(timers_.begin()->first.first - now());
  const auto due = std::clamp(wait, Milliseconds(0), Milliseconds(std::chrono::hours(1)));
  return static_cast<int>((limit.count() < 0 ? due : std::min(due, limit)).count());
}

void Loop::run_due_timers() {
  const auto until = now();
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    auto handler = std::move(timers_.extract(timers_.begin()).mapped());
    handler();
  }
}

Result<void> Loop::run() {
  running_ = true;
  while (running_) TRY(run_once(Milliseconds(-1)));
  return {};
}

}  // namespace glidepod
