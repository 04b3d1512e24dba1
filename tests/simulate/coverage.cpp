#include "tests/simulate/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace glidepod::simulate {

using agent::Transition;

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
}

std::size_t Coverage::seen() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      agent::transitions(), [this](const Transition& t) { return counts[index(t)] > 0; }));
}

void Coverage::print() const {
  for (const Transition& t : agent::transitions())
    fmt::print("transition {} {} {}: {}\n", name_of(t.from), name_of(t.event), name_of(t.to),
               counts[index(t)]);
}

std::size_t Coverage::print_missing() const {
  for (const Transition& t : agent::transitions())
    if (counts[index(t)] == 0)
      fmt::print("simulate: never seen: {} by {} to {}\n", name_of(t.from), name_of(t.event), name_of(t.to));
  return agent::transitions().size() - seen();
}

}  // namespace glidepod::simulate
