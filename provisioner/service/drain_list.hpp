#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "provisioner/decide/drained.hpp"

namespace glidepod::provisioner {

// Where what operators have drained is kept: an annotation of the instances' lease, which each of them reads,
// and which renewals leave as it is.
//
//   [{"kind": "group", "name": HASH, "mode": "drain", "reason": TEXT, "since": seconds since 1970}]
inline constexpr const char* k_drained_annotation = "glidepod.io/drained";
inline constexpr std::size_t k_most_drained = 100;

// An error where it is not such a list, or too long.
Result<DrainList> drained_in(const nlohmann::json& lease);
nlohmann::json drained_json(const DrainList& list);
// The lease with this list in place of its own; an error where that has too many entries.
Result<nlohmann::json> with_drained(nlohmann::json lease, const DrainList& list);

}  // namespace glidepod::provisioner
