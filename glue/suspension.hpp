#pragma once

#include <optional>

#include "glue/pursuit.hpp"
#include "glue/timer.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Suspends and continues a job: brings SIGSTOP, SIGTSTP or SIGCONT to every descendant of this process, also
// to those that are forked meanwhile.
class Suspension {
 public:
  explicit Suspension(Loop& loop) : timer_(loop) {}

  // Whether the last order was to suspend.
  bool suspended() const { return suspended_; }
  // The first pass over the processes is made at once, so that signals keep their order. A later order takes
  // the place of this one.
  void order(int number);
  // Continues a suspended job, so that it can act on its end. The order to suspend it still stands.
  void wake();
  // Signals nobody any more.
  void stop() { timer_.stop(); }

 private:
  void pursue(int number);
  void pass();

  bool suspended_ = false;
  std::optional<Pursuit> pursuit_;
  SteadyTime until_{};
  Timer timer_;
};

}  // namespace glidepod::glue
