#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::agent {

// Runs one command and ends it when asked: SIGTERM, after its grace SIGQUIT, five seconds later SIGKILL.
class Supervisor {
 public:
  // ended is called once for each start that succeeded.
  Supervisor(Loop& loop, std::function<void(ExitStatus)> ended);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<void> start(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  bool running() const { return child_.has_value(); }
  pid_t pid() const { return child_ ? child_->pid() : -1; }
  // Has the command read its configuration again (SIGHUP).
  void reconfigure();
  // Has the command end, in that time; further calls change nothing.
  void stop(std::chrono::seconds grace);

 private:
  void on_end();
  void escalate(int signal);

  Loop& loop_;
  std::chrono::seconds grace_{};
  std::function<void(ExitStatus)> ended_;
  std::optional<Child> child_;
  Loop::TimerId timer_ = 0;
  bool stopping_ = false;
};

}  // namespace glidepod::agent
