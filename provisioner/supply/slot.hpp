#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace glidepod::provisioner {

using Time = std::chrono::sys_seconds;

// What a pilot says of the job in one of its slots, for people (pilot-agent/slot_attributes.hpp). Any pilot
// can say anything.
struct SlotJob {
  std::string id;     // "12.0", by HTCondor's own word
  std::string state;  // of its container, or "waiting" or "pulling"; empty: the pilot has said nothing of it
  Time since{};
  std::string container, image, digest, how, waits_for;
  std::optional<double> bind_s;
};

// A slot of a pilot in the pool.
struct Slot {
  std::string pod;
  bool claimed = false;
  std::string owner = {};  // whose job, where claimed
  std::string name = {};
  SlotJob job = {};
  std::string containers = {};  // of the pod's own slot: "payload-0=running payload-1=idle"
};

}  // namespace glidepod::provisioner
