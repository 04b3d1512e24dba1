#include "pilot-agent/core/state.hpp"

#include <array>

namespace glidepod::agent {

std::string_view name_of(State state) {
  constexpr std::array<std::string_view, k_states> k_names = {
      "absent", "idle", "switching", "reserved", "asking", "running", "draining", "clearing", "broken"};
  return k_names.at(static_cast<std::size_t>(state));
}

std::string_view name_of(Switching::Leg leg) {
  switch (leg) {
    case Switching::Leg::home:
      return "home";
    case Switching::Leg::target:
      return "target";
    case Switching::Leg::check:
      return "check";
    case Switching::Leg::calm:
      return "calm";
    case Switching::Leg::size:
      return "size";
  }
  return "?";
}

std::string_view name_of(Switching::Proof proof) {
  return proof == Switching::Proof::goodbye ? "goodbye" : "status";
}

Job* Container::job() {
  if (auto* running = std::get_if<Running>(&state)) return &running->job;
  if (auto* draining = std::get_if<Draining>(&state)) return &draining->job;
  return nullptr;
}

Pulse* Container::pulse() {
  if (auto* clearing = std::get_if<Clearing>(&state)) return &clearing->pulse;
  Job* own = job();
  return own != nullptr ? &own->pulse : nullptr;
}

const Request* Container::waiting() const {
  if (const auto* step = std::get_if<Switching>(&state))
    return step->waiting ? &step->waiting->request : nullptr;
  const auto* asking = std::get_if<Asking>(&state);
  return asking != nullptr ? &asking->waiting.request : nullptr;
}

}  // namespace glidepod::agent
