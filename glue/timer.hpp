#pragma once

#include <functional>
#include <utility>

#include "lib/base/loop.hpp"

namespace glidepod::glue {

// One timer of a loop, which must outlive it. It ends with this object.
class Timer {
 public:
  explicit Timer(Loop& loop) : loop_(loop) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { stop(); }

  // Replaces the time that was set before.
  void set(Milliseconds delay, std::function<void()> handler) {
    stop();
    id_ = loop_.after(delay, std::move(handler));
  }
  void stop() { loop_.cancel(std::exchange(id_, 0)); }

 private:
  Loop& loop_;
  Loop::TimerId id_ = 0;
};

}  // namespace glidepod::glue
