#pragma once

#include <array>
#include <cstdint>

#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/transitions.hpp"

namespace glidepod::simulate {

// How often each transition of a container's state, and of a pull's beside the pod, was seen.
class Coverage {
 public:
  void count(const agent::Transition& transition) { ++counts[index(transition)]; }
  void count(const agent::PullTransition& transition) { ++pull_counts[index(transition)]; }
  void add(const Coverage& other);
  // Of the table of all that there are: how many were seen, and which were not.
  std::size_t seen() const;
  static std::size_t all();
  void print() const;
  std::size_t print_missing() const;

 private:
  static std::size_t index(const agent::Transition& transition) {
    return (static_cast<std::size_t>(transition.from) * agent::k_events +
            static_cast<std::size_t>(transition.event)) *
               agent::k_states +
           static_cast<std::size_t>(transition.to);
  }
  static std::size_t index(const agent::PullTransition& transition) {
    return (static_cast<std::size_t>(transition.from) * agent::k_pull_events +
            static_cast<std::size_t>(transition.event)) *
               agent::k_pull_states +
           static_cast<std::size_t>(transition.to);
  }
  std::array<std::uint64_t, agent::k_states * agent::k_events * agent::k_states> counts{};
  std::array<std::uint64_t, agent::k_pull_states * agent::k_pull_events * agent::k_pull_states> pull_counts{};
};

}  // namespace glidepod::simulate
