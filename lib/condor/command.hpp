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
  std::string input = {};  // what it reads from its standard input
};

// How a run ended: ok, or an Error with the program's name and the first line that it wrote to stderr.
using CommandEnd = Result<void>;

// Runs programs without blocking. Tests put a fake in its place.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // Calls on_output with each piece of stdout as it comes, then on_end once, never from within run() itself.
  virtual void run(Command command, std::function<void(std::string_view)> on_output,
                   std::function<void(CommandEnd)> on_end) = 0;
};

// The real one: child processes on a loop. A command past its limit is killed. Destroying it kills what still
// runs, without calling anyone.
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
