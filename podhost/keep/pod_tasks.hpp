#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "podhost/keep/pod_state.hpp"
#include "podhost/runtime/container_config.hpp"
#include "podhost/runtime/podman.hpp"
#include "podhost/store/pod_files.hpp"

namespace glidepod::podhost {

// The blocking steps of a pod's life, run in worker threads.
struct TaskTools {
  Podman& podman;
  const PodFiles& files;
  std::string state_dir;
  std::int64_t pids_limit = 0;
};

struct MadeSandbox {
  std::string ip;
  Fd pidfd;
};
Result<MadeSandbox> create_sandbox(const TaskTools& tools, const PodSpec& pod, const PodFacts& facts);

// A container that is ready to start.
struct Prepared {
  std::string id, image_id;
  int stop_signal = 15;
  Fd pidfd, conmon;
};
// Why one is not: the fact in that Error.
struct NotPrepared {
  enum class Retry : std::uint8_t { backoff, never, soon };
  std::string reason;  // "ErrImagePull", as the pod's status has it
  Retry retry = Retry::backoff;
  bool start_error = false;  // podman made it but the runtime could not begin it
  std::string image_id;
};
// Everything before the start: pull if needed, create, initialise.
Result<Prepared> prepare_container(const TaskTools& tools, const PodSpec& pod, const ContainerSpec& container,
                                   const PodFacts& facts, int attempt, const std::string& podman_name,
                                   const std::atomic<bool>& cancelled);

// Whether it was ever started.
bool has_begun(const ContainerInfo& container);
// Starts what is prepared. Where the answer to an earlier call was lost it may have run already: then nothing
// is done, for podman would start it a second time once it has ended.
Result<void> start_container(Podman& podman, const std::string& id, bool asked_before);

// Gives a running container other resources. An error where it has more memory in use than it may have then:
// the kernel would kill.
Result<void> resize_container(const TaskTools& tools, const std::string& id, const Resources& resources);

struct EndResult {
  int exit_code = 0;
  std::string reason, message;
  std::optional<Time> started, finished;
};
// How a container ended. Its exit code is known once conmon, its parent, has ended too.
EndResult learn_end(const TaskTools& tools, const PodSpec& pod, const ContainerSpec& container,
                    const std::string& id, int attempt, const Fd& conmon);
// Removes a container whose end is saved, and the files that nobody needs any more then.
void bury_container(const TaskTools& tools, const std::string& uid, const std::string& container,
                    const std::string& id, int attempt);

// A container as podman has it, with its processes held.
struct FoundContainer {
  ContainerInfo info;
  Fd process;  // none if it has ended
  Fd conmon;
};
struct FoundPod {
  std::optional<FoundContainer> infra;
  std::vector<FoundContainer> containers;
};
// What podman has of this podhost's: pods by uid, and the ids of all its podman pods.
struct Found {
  std::map<std::string, FoundPod> pods;
  std::vector<std::string> podman_pods;
};
Result<Found> find_pods(Podman& podman, const std::string& state_dir);

// These wait for podman however long it is away, and give up only when podhost ends.
Result<void> remove_container(Podman& podman, const std::string& id);
Result<bool> has_pod(Podman& podman, const std::string& name);

// Removes a podman pod with all it holds; no error if there is none.
Result<void> remove_sandbox(Podman& podman, const std::string& name);

}  // namespace glidepod::podhost
