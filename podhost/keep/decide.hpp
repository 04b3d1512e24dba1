#pragma once

#include <optional>
#include <string>
#include <vector>

#include "podhost/keep/pod_state.hpp"
#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {

struct BackoffRule {
  Seconds first{10};
  Seconds most{300};
};

struct Action {
  enum class Kind : std::uint8_t {
    create_sandbox,
    remove_sandbox,  // and what runs in it
    prepare,         // pull if needed, create, initialise
    discard,         // forget what is prepared
    start,           // what is prepared
    stop,            // ask politely, grace seconds
    kill,
    resize,   // give it the resources that the spec has by now
    release,  // a finished pod: its volumes go, status and logs stay
    forget,   // a deleted pod: everything goes
    exceed_deadline,
  };
  Kind kind;
  std::string container;
  Seconds grace{0};
  bool restart = false;   // prepare: after an end that counts for the back-off
  bool replaced = false;  // stop: because the image was changed
  bool operator==(const Action&) const = default;
};

struct Decision {
  std::vector<Action> actions;
  std::optional<Time> wake_at;  // when to decide again even if nothing happens
};

// What to do next for a pod, as the kubelet would. Pure.
Decision decide(const PodSpec& spec, const PodState& state, const BackoffRule& rule, Time now);

// When this container may start again, given that its run with this image ended then; unset: at once.
std::optional<Time> restart_at(const ContainerState& container, const std::string& image, Time ended,
                               const BackoffRule& rule);
// Counts one more restart.
void count_restart(Backoff& backoff, Time ended, Time now, const BackoffRule& rule);

bool restarts(RestartPolicy policy, const Run& run);
// A sidecar starts again whatever the pod's policy is.
RestartPolicy policy_of(const PodSpec& spec, const ContainerSpec& container);
// All init containers have succeeded, and all sidecars have begun.
bool initialized(const PodSpec& spec, const PodState& state);
// Nothing of the pod runs or will run again of itself.
bool finished(const PodSpec& spec, const PodState& state);

}  // namespace glidepod::podhost
