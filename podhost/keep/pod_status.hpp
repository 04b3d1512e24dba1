#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/base/time.hpp"
#include "podhost/keep/decide.hpp"

namespace glidepod::podhost {

struct HostFacts {
  std::string host_ip;
};

// How long a failed pull is called ErrImagePull before it is called ImagePullBackOff.
inline constexpr Seconds k_pull_error_shown{2};

// The pod's status in the kubelet's words. Pure; `before` is the status published last, whose transition
// times stay where a condition has not changed.
nlohmann::json make_status(const PodSpec& spec, const PodState& state, const nlohmann::json& before,
                           const HostFacts& host, const BackoffRule& rule, Time now);

// When make_status() will say something else though nothing has happened.
std::optional<Time> status_changes_at(const PodState& state, Time now);

// The runs that a status tells of, for a podhost that starts again.
void recall_runs(const PodSpec& spec, const nlohmann::json& status, PodState* state);

}  // namespace glidepod::podhost
