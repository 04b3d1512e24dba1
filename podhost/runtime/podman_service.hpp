#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::podhost {

// Keeps a `podman system service` running on a socket that podhost itself listens on, so that calls made
// while podman is away wait for the next one instead of failing. In the loop's thread.
class PodmanService {
 public:
  // command: podman with its global options. ended(how) is told of every end but that by stop().
  PodmanService(Loop& loop, std::vector<std::string> command, std::string socket,
                std::function<void(const std::string& how)> ended)
      : loop_(loop), command_(std::move(command)), socket_(std::move(socket)), on_end_(std::move(ended)) {}
  ~PodmanService();

  Result<void> start();
  void stop();

 private:
  Result<void> spawn();
  void ended();
  void start_again();
  Loop& loop_;
  std::vector<std::string> command_;
  std::string socket_;
  std::function<void(const std::string&)> on_end_;
  Fd listener_;
  std::optional<Child> child_;
  SteadyTime spawned_{};
  Loop::TimerId timer_ = 0;
};

}  // namespace glidepod::podhost
