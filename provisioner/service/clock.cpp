#include "provisioner/service/clock.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {
// Below it, it is a clock that runs slow or fast, or one that is being brought back.
constexpr std::chrono::seconds k_step{5};
constexpr std::chrono::hours k_never_right{24};
}  // namespace

Clock::Reading Clock::read(Wall wall, SteadyTime steady) {
  const auto passed = std::chrono::duration_cast<Wall::duration>(steady - steady_);
  const auto step = wall - wall_ - passed;
  wall_ = wall;
  steady_ = steady;
  time_ += passed;
  const auto off = wall - time_;
  const bool anew = std::chrono::abs(off) > k_never_right;
  time_ += anew ? off : std::clamp(off, -passed / 10, passed / 10);
  Reading reading{.time = time(), .anew = anew};
  if (std::chrono::abs(step) >= k_step) reading.stepped = std::chrono::round<std::chrono::seconds>(step);
  return reading;
}

}  // namespace glidepod::provisioner
