#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/shared_text.hpp"
#include "provisioner/demand/resources.hpp"

namespace glidepod::provisioner {

using Time = std::chrono::sys_seconds;

// What a pilot says of the job in one of its slots, for people (pilot-agent/slot_attributes.hpp). Any pilot
// can say anything.
struct SlotJob {
  SharedText id;     // "12.0", by HTCondor's own word
  SharedText state;  // of its container, or "waiting" or "pulling"; empty: the pilot has said nothing of it
  Time since{};
  SharedText container, image, digest, how, waits_for;
  std::optional<double> bind_s;
};

// Jobs that came by a container in a pilot and those that did not, since its agent started, as it says itself
// (pilot-agent/core/binds.hpp).
struct BindCounts {
  static constexpr std::array<std::string_view, 7> k_names = {"warm", "fresh",          "switched", "pulled",
                                                              "user", "infrastructure", "doubt"};
  static constexpr std::size_t k_bound = 4;  // the first are those that did
  static constexpr std::array<double, 8> k_seconds = {0.1, 0.5, 1, 2, 5, 15, 60, 300};

  std::array<std::uint64_t, k_names.size()> counts{};
  std::array<std::uint64_t, k_seconds.size()> within{};  // each counts all below it too
  double seconds = 0;
};

// A slot of a pilot in the pool.
struct Slot {
  SharedText pod;
  bool claimed = false;
  SharedText owner = {};  // whose job, where claimed
  SharedText name = {};
  SlotJob job = {};
  SharedText containers = {};  // of the pod's own slot: "payload-0=running payload-1=idle"
  Rare<BindCounts> binds = {};
  SharedText trouble = {};  // why the pilot takes no more jobs
  SharedText held = {};     // the last job there that had too little memory or disk, and the numbers
  // Of the pod's own slot: what it has left for more jobs, and until when that is good. None: nothing, or not
  // known.
  Rare<Resources> room = {};
  Time room_until{};
  Time claimed_at{};  // where it is claimed, and says since when
};

}  // namespace glidepod::provisioner
