#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/condor/command.hpp"

namespace glidepod::condor {

// Answers commands from a function; every answer waits until run_all(), as a loop's would.
class FakeRunner : public CommandRunner {
 public:
  struct Reply {
    std::string output;
    CommandEnd end;
  };
  std::function<Reply(const Command&)> answer;
  std::vector<std::vector<std::string>> commands;
  std::size_t most_at_once = 0;

  void run(Command command, std::function<void(std::string_view)> on_output,
           std::function<void(CommandEnd)> on_end) override {
    commands.push_back(command.argv);
    waiting_.push_back([this, command, on_output = std::move(on_output), on_end = std::move(on_end)] {
      const auto reply = answer(command);
      if (!reply.output.empty()) on_output(reply.output);
      on_end(reply.end);
    });
    most_at_once = std::max(most_at_once, waiting_.size());
  }
  void run_all() {
    while (!waiting_.empty()) {
      auto next = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      next();
    }
  }

 private:
  std::vector<std::function<void()>> waiting_;
};

}  // namespace glidepod::condor
