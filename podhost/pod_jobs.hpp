#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "lib/base/fd.hpp"
#include "podhost/container_config.hpp"
#include "podhost/pod_files.hpp"
#include "podhost/pod_state.hpp"
#include "podhost/podman.hpp"

namespace glidepod::podhost {

// The blocking steps of a pod's life, run in worker threads.
struct JobTools {
  Podman& podman;
  const PodFiles& files;
  std::string state_dir;
  std::int64_t pids_limit = 0;
};

struct SandboxResult {
  std::string error;  // empty: it runs
  bool away = false;  // podman could not be reached
  std::string ip;
  Fd pidfd;
};
SandboxResult create_sandbox(const JobTools& tools, const PodSpec& pod, const PodFacts& facts);

struct PrepareResult {
  enum class Retry : std::uint8_t { backoff, never, soon };
  std::string reason, message;  // reason empty: it is ready to start
  Retry retry = Retry::backoff;
  bool start_error = false;     // podman made it but the runtime could not begin it
  std::string id, image_id;
  int stop_signal = 15;
  Fd pidfd, conmon;
};
// Everything before the start: pull if needed, create, initialise.
PrepareResult prepare_container(const JobTools& tools, const PodSpec& pod, const ContainerSpec& container,
                                const PodFacts& facts, int attempt, const std::string& podman_name,
                                const std::atomic<bool>& cancelled);

struct EndResult {
  int exit_code = 0;
  std::string reason, message;
  std::optional<Time> started, finished;
};
// Learns how a container ended, and removes it. Its exit code is known once conmon, its parent, has ended too.
EndResult bury_container(const JobTools& tools, const PodSpec& pod, const ContainerSpec& container,
                         const std::string& id, int attempt, const Fd& conmon);

// A pidfd of the container's main process, if it has one.
Result<Fd> open_process(Podman& podman, const ContainerInfo& info);
// One of its conmon; none if that has ended.
Fd open_conmon(const ContainerInfo& info);

}  // namespace glidepod::podhost
