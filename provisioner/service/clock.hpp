#pragma once

#include <chrono>

#include "lib/base/loop.hpp"
#include "provisioner/supply/slot.hpp"

namespace glidepod::provisioner {

// The time that cycles are at, by which pauses and windows are measured. It goes on as the steady clock does
// when somebody sets the system's, and comes back to that by a tenth of the time that passes: no pause is
// longer or shorter by more. One that is a day off was never right, and is left at once.
class Clock {
 public:
  using Wall = std::chrono::system_clock::time_point;

  Clock(Wall wall, SteadyTime steady) : wall_(wall), steady_(steady), time_(wall) {}

  struct Reading {
    Time time;
    std::chrono::seconds stepped{};  // what the system's clock was set forward by since the last reading
    bool anew = false;               // what was measured by the time before is worth nothing
  };
  Reading read(Wall wall, SteadyTime steady);
  Time time() const { return std::chrono::floor<std::chrono::seconds>(time_); }

 private:
  Wall wall_;
  SteadyTime steady_;
  Wall time_;
};

}  // namespace glidepod::provisioner
