#include "pilot-agent/core/transitions.hpp"

#include <algorithm>
#include <array>

namespace glidepod::agent {

std::string_view name_of(EventKind event) {
  constexpr std::array<std::string_view, k_events> k_names = {
      "hello",  "goodbye", "lost",      "status", "answered", "refused", "assigned", "known", "unknown",
      "exited", "ended",   "no_launch", "gone",   "time",     "pod",     "likely",   "left"};
  return k_names.at(static_cast<std::size_t>(event));
}

std::span<const Transition> transitions() {
  using enum State;
  using E = EventKind;
  // clang-format off
  static constexpr auto k_all = std::to_array<Transition>({
      {absent, E::hello, idle},
      {absent, E::hello, switching},
      {absent, E::pod, switching},
      {absent, E::status, switching},
      {absent, E::time, switching},
      {idle, E::assigned, idle},
      {idle, E::assigned, switching},
      {idle, E::assigned, reserved},
      {idle, E::assigned, asking},
      {idle, E::assigned, running},
      {idle, E::goodbye, absent},
      {idle, E::lost, absent},
      {idle, E::pod, switching},
      {idle, E::likely, switching},
      {idle, E::left, clearing},
      {switching, E::hello, idle},
      {switching, E::hello, reserved},
      {switching, E::hello, asking},
      {switching, E::hello, running},
      {switching, E::status, idle},
      {switching, E::status, reserved},
      {switching, E::status, asking},
      {switching, E::status, running},
      {switching, E::status, broken},
      {switching, E::answered, idle},
      {switching, E::answered, reserved},
      {switching, E::answered, asking},
      {switching, E::answered, running},
      {switching, E::answered, broken},
      {switching, E::goodbye, broken},
      {switching, E::refused, idle},
      {switching, E::refused, broken},
      {switching, E::time, idle},
      {switching, E::time, reserved},
      {switching, E::time, asking},
      {switching, E::time, running},
      {switching, E::time, broken},
      {reserved, E::assigned, idle},
      {reserved, E::assigned, switching},
      {reserved, E::assigned, reserved},
      {reserved, E::assigned, asking},
      {reserved, E::assigned, running},
      {reserved, E::goodbye, absent},
      {reserved, E::lost, absent},
      {reserved, E::status, idle},
      {reserved, E::time, idle},
      {asking, E::known, running},
      {asking, E::unknown, idle},
      {asking, E::gone, idle},
      {asking, E::status, idle},
      {asking, E::time, idle},
      {asking, E::goodbye, absent},
      {asking, E::lost, absent},
      {running, E::exited, draining},
      {running, E::no_launch, idle},
      {running, E::gone, draining},
      {running, E::status, draining},
      {running, E::goodbye, absent},
      {running, E::lost, switching},
      {draining, E::ended, idle},
      {draining, E::ended, draining},
      {draining, E::no_launch, idle},
      {draining, E::time, idle},
      {draining, E::time, draining},
      {draining, E::goodbye, absent},
      {draining, E::lost, switching},
      {clearing, E::ended, idle},
      {clearing, E::no_launch, idle},
      {clearing, E::goodbye, absent},
      {clearing, E::lost, switching},
      {broken, E::goodbye, switching},
      {broken, E::assigned, switching},
      {broken, E::hello, switching},
      {broken, E::pod, switching},
      {broken, E::status, switching},
      {broken, E::answered, switching},
      {broken, E::refused, switching},
      {broken, E::time, switching},
  });
  // clang-format on
  return k_all;
}

bool allowed(const Transition& transition) {
  return std::ranges::find(transitions(), transition) != transitions().end();
}

}  // namespace glidepod::agent
