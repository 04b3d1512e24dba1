#pragma once

#include <array>
#include <cstdint>

#include "pilot-agent/core/transitions.hpp"

namespace glidepod::simulate {

// How often each transition of a container's state was seen.
class Coverage {
 public:
  void count(const agent::Transition& transition) { ++counts[index(transition)]; }
  void add(const Coverage& other);
  // Of the table of all that there are: how many were seen, and which were not.
  std::size_t seen() const;
  void print() const;
  std::size_t print_missing() const;

 private:
  static std::size_t index(const agent::Transition& transition) {
    return (static_cast<std::size_t>(transition.from) * agent::k_events +
            static_cast<std::size_t>(transition.event)) *
               agent::k_states +
           static_cast<std::size_t>(transition.to);
  }
  std::array<std::uint64_t, agent::k_states * agent::k_events * agent::k_states> counts{};
};

}  // namespace glidepod::simulate
