#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "pilot-agent/core/state.hpp"

namespace glidepod::agent {

// What can happen to a container.
enum class EventKind : std::uint8_t {
  hello,      // a glue has connected
  goodbye,    // its glue has been told to end
  lost,       // its glue is gone without goodbye, or does not answer
  status,     // the pod's status says something about it
  answered,   // the API has taken the patch
  refused,    // the API has not taken it, or nobody knows
  assigned,   // a request of the queue gets it
  known,      // what an image runs by itself is known
  unknown,    // that could not be found out
  exited,     // the job's main process has ended
  ended,      // nothing of the job is left
  no_launch,  // glue could not start the job
  gone,       // the client that it works for is gone, or its job must not go on
  time,       // a deadline has passed
  pod,        // the pod is known: an earlier agent may have left it anywhere
  likely,     // nobody waits, and another image is likelier to be asked for
  left,       // a lost job may have left something in shared places
};
constexpr std::size_t k_events = 17;
std::string_view name_of(EventKind event);

struct Transition {
  State from;
  EventKind event;
  State to;
  friend bool operator==(const Transition&, const Transition&) = default;
};

// All transitions. pilot-agent/README.md has the same table for people, and a test compares the two.
std::span<const Transition> transitions();
bool allowed(const Transition& transition);

}  // namespace glidepod::agent
