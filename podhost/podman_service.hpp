#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::podhost {

// Keeps a `podman system service` running on a socket that podhost itself listens on, so that calls made while
// podman is away wait for the next one instead of failing. In the loop's thread.
class PodmanService {
 public:
  // command: podman with its global options.
  PodmanService(Loop& loop, std::vector<std::string> command, std::string socket)
      : loop_(loop), command_(std::move(command)), socket_(std::move(socket)) {}
  ~PodmanService();

  Result<void> start();
  void stop();

 private:
  Result<void> spawn();
  void ended();
  Loop& loop_;
  std::vector<std::string> command_;
  std::string socket_;
  Fd listener_;
  std::optional<Child> child_;
  SteadyTime spawned_{};
  Loop::TimerId timer_ = 0;
};

}  // namespace glidepod::podhost
