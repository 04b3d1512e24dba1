#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {

using Time = std::chrono::system_clock::time_point;
using Seconds = std::chrono::seconds;

// One podman container that was started: the kubelet would call it an attempt.
struct Run {
  enum class State : std::uint8_t { running, stopping, ended };
  State state = State::running;
  std::string id, image, image_id;
  int attempt = 0;
  Time started{};
  std::optional<Time> kill_at;  // stopping: when SIGKILL is due
  std::optional<Time> stop_by;  // stopping or stopped: the end of its grace period
  bool replaced = false;  // stopped because its image was changed: starts again whatever restartPolicy says
  // Of an ended run. The exit code is known a few milliseconds after the end.
  bool exit_known = false;
  int exit_code = 0;
  Time finished{};
  std::string reason, message;
  // In force; not known of one that an older podhost has started, and then taken for the spec's.
  std::optional<Resources> resources;
  bool resizing = false;
  std::string resize_error;
  std::optional<Time> resize_retry_at;
};

// The podman container that is to run next, prepared while the present one still runs.
struct Next {
  enum class State : std::uint8_t {
    preparing,
    ready,
    starting,
    failed,       // it cannot be made
    unstartable,  // its first process cannot be: that counts as a run, once the one before has ended
  };
  State state = State::preparing;
  bool start_unanswered = false;  // podman was asked to start it, and may have
  std::uint64_t token = 0;
  std::string image, id, image_id;
  Resources resources;
  // Of a failed one: what the status says, and when it is tried again (never, if unset). Of one that is
  // unstartable: the message.
  std::string reason, message;
  Time failed_at{};
  std::optional<Time> retry_at;
};

struct Backoff {
  Seconds delay{};
  Time updated{};
};

struct ContainerState {
  std::string name;
  std::optional<Run> run;
  std::optional<Run> previous;
  std::optional<Next> next;
  int started = 0;                                 // runs so far
  std::map<std::string, Backoff> restart_backoff;  // by image string
  Backoff pull_backoff;
  std::string pull_backoff_image;
};

// Why a pod as a whole has failed, whatever its containers did.
struct PodFailure {
  std::string reason, message;
};

// What the status says of a container of whose end nobody knows.
inline constexpr int k_exit_unknown = 137;
inline constexpr const char* k_status_unknown = "ContainerStatusUnknown";
inline constexpr const char* k_status_unknown_message =
    "The container could not be located when the pod was terminated";

enum class Sandbox : std::uint8_t { none, creating, failed, ready, lost, removing };

// What podhost knows of a pod: plain data, the input of decide() and of the status.
struct PodState {
  Sandbox sandbox = Sandbox::none;
  std::optional<Time> sandbox_retry_at;
  std::optional<Time> removal_retry_at;  // of a sandbox that podman would not remove
  std::string sandbox_message;
  std::string pod_ip;
  Time started{};
  std::vector<ContainerState> init_containers, containers;  // in the spec's order
  int tasks = 0;                                            // under way in other threads
  bool released = false;                                    // a finished pod's volumes are gone
  bool unsaved = false;                                     // the status is not on disk, or was not told yet
  std::optional<Seconds> deleting;                          // the grace period of a pod being deleted
  std::optional<PodFailure> failure;

  ContainerState* find(const std::string& name) {
    for (auto* list : {&init_containers, &containers}) {
      for (auto& container : *list) {
        if (container.name == name) return &container;
      }
    }
    return nullptr;
  }
};

}  // namespace glidepod::podhost
