#pragma once

#include <cmath>
#include <cstdint>

#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// splitmix64: small, and the same everywhere, which the standard's distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // From 0 up to but not including 1.
  double share() {
    state_ += 0x9e3779b97f4a7c15u;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
  Seconds around(Seconds mean) {
    return Seconds(std::llround(static_cast<double>(mean.count()) * (0.5 + share())));
  }
  Seconds exponential(Seconds mean) {
    return Seconds(1 + std::llround(-std::log1p(-share()) * static_cast<double>(mean.count())));
  }

 private:
  std::uint64_t state_;
};

}  // namespace glidepod::provisioner
