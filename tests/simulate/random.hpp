#pragma once

#include <cstdint>

#include "lib/base/loop.hpp"

namespace glidepod::simulate {

// Everything that happens by chance in a schedule comes from one of these (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 0x632be59bd9b4e019U) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  // Both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int per_thousand) { return between(0, 999) < per_thousand; }
  // Another stream, for what was thought of later: a seed goes on to mean the schedule that it meant.
  Random aside(std::uint64_t what) const { return Random(state_ ^ what); }
  // Mostly short, sometimes long: half of them in the first tenth.
  Milliseconds delay(std::int64_t low, std::int64_t high) {
    return Milliseconds(between(low, chance(500) ? high : low + (high - low) / 10));
  }
  template <typename List>
  auto& pick(List& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace glidepod::simulate
