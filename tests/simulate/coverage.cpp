#include "tests/simulate/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace glidepod::simulate {

using agent::pull_transitions;
using agent::PullTransition;
using agent::Transition;
using agent::transitions;

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  for (std::size_t i = 0; i < pull_counts.size(); ++i) pull_counts[i] += other.pull_counts[i];
}

std::size_t Coverage::all() {
  return transitions().size() + pull_transitions().size();
}

std::size_t Coverage::seen() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(transitions(), [this](const Transition& t) { return counts[index(t)] > 0; }) +
      std::ranges::count_if(pull_transitions(),
                            [this](const PullTransition& t) { return pull_counts[index(t)] > 0; }));
}

void Coverage::print() const {
  for (const Transition& t : transitions())
    fmt::print("transition {} {} {}: {}\n", name_of(t.from), name_of(t.event), name_of(t.to),
               counts[index(t)]);
  for (const PullTransition& t : pull_transitions())
    fmt::print("pull {} {} {}: {}\n", name_of(t.from), name_of(t.event), name_of(t.to),
               pull_counts[index(t)]);
}

std::size_t Coverage::print_missing() const {
  for (const Transition& t : transitions())
    if (counts[index(t)] == 0)
      fmt::print("simulate: never seen: {} by {} to {}\n", name_of(t.from), name_of(t.event), name_of(t.to));
  for (const PullTransition& t : pull_transitions())
    if (pull_counts[index(t)] == 0)
      fmt::print("simulate: never seen: pull {} by {} to {}\n", name_of(t.from), name_of(t.event),
                 name_of(t.to));
  return all() - seen();
}

}  // namespace glidepod::simulate
