#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"

namespace glidepod::condor {

// A program to run for its output.
struct Command {
  std::vector<std::string> argv;
  Milliseconds time_limit{60'000};
  std::string input = {};  // what the program reads from its standard input
};

// How a run ended: success, or an Error with the program's name and what it wrote to stderr.
using CommandEnd = Result<void>;

// Runs programs without blocking. Tests put a fake in its place.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // Calls on_output with each piece of stdout as it comes, then on_end once, never from within run() itself.
  virtual void run(Command command, std::function<void(std::string_view)> on_output,
                   std::function<void(CommandEnd)> on_end) = 0;
};

// The real runner: child processes on a Loop. A command that exceeds its time limit is killed. Destroying the
// runner kills all commands that still run, without a call of their handlers.
class ChildRunner : public CommandRunner {
 public:
  explicit ChildRunner(Loop& loop) : loop_(loop) {}
  ChildRunner(const ChildRunner&) = delete;
  ChildRunner& operator=(const ChildRunner&) = delete;
  ~ChildRunner() override;
  void run(Command command, std::function<void(std::string_view)> on_output,
           std::function<void(CommandEnd)> on_end) override;

 private:
  struct Job;
  Result<void> start(const std::shared_ptr<Job>& job);
  enum class Reading : std::uint8_t { piece, rest };
  void read_output(Job& job, Reading reading);
  void read_errors(Job& job);
  void forget(Job& job);
  void finish(const std::shared_ptr<Job>& job);

  Loop& loop_;
  std::vector<std::shared_ptr<Job>> jobs_;
};

}  // namespace glidepod::condor
