#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace glidepod::provisioner {

// What the pool's negotiator makes of pods of one group that could be made, when it is told of them
// (provisioner/offline).
struct Offers {
  enum class State : std::uint8_t {
    no_pilot,  // it is told of none: no pilot has joined whose ad could be copied
    asked,     // no negotiation cycle that saw them is over yet
    answered,
  };
  State state = State::asked;
  std::int64_t offered = 0, matched = 0;
  std::int64_t queried = 0;  // idle jobs by the query
  bool decides = false;      // the idle jobs that count follow from this; else it is only told
  // When that cycle was over, and how many slots of the group's pods have been claimed since. That cycle
  // took the jobs there for ones that offered pods would run.
  std::chrono::sys_seconds over{};
  std::int64_t begun = 0;

  // Whether fewer jobs count than the query has.
  bool limits() const { return state == State::answered && matched < offered && matched < queried; }
  // For people, how many jobs have begun since, to be put behind what would be used; empty: none.
  std::string since() const;
  // For people: how many jobs the query has, and how many offered pods would be used.
  std::string to_string() const;
};

}  // namespace glidepod::provisioner
