#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "provisioner/service/fitting.hpp"
#include "provisioner/service/owners.hpp"
#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// What runs where: every pod that has not ended, with the jobs in its slots.
//
//   [{"pod": NAME, "node": NAME, "state": "claimed", "since": SECONDS, "containers": "payload-0=running ...",
//     "jobs": [{"slot": NAME, "job": "12.0", "owner": "alice", "state": "running", "since": SECONDS,
//     "container": "payload-0", "image": NAME, "digest": "sha256:...", "how": "switched", "bind_s": 2.5,
//     "waits_for": TEXT}]}]
//
// SECONDS are since 1970. What is not known is missing. A pod of a named place has "place" too, which stands
// in front of its and its node's names (place.hpp). A pod may have "waits_for" itself: what the kubelet or
// the scheduler says, or why its pilot takes no more jobs.
//
// Where their text would take more than so many bytes, those that need looking at come first, and left_out is
// {"pods": {STATE: NUMBER}, "jobs": {STATE: NUMBER}} of the others.
nlohmann::json pods_json(const std::vector<Pod>& pods, const std::vector<Slot>& slots,
                         const OwnerNaming& naming = {}, std::size_t most = k_any_size,
                         nlohmann::json* left_out = nullptr);
// What stands between the brackets of its text.
std::string pods_text(const std::vector<Pod>& pods, const std::vector<Slot>& slots, const OwnerNaming& naming,
                      std::size_t most, nlohmann::json* left_out);

// How much somebody should look at a pod or a job, by its state.
enum class Concern : std::uint8_t { trouble, waits, runs, none };
Concern concern_of(std::string_view state);

}  // namespace glidepod::provisioner
