#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "glue/cleanup.hpp"
#include "glue/main_process.hpp"
#include "glue/pursuit.hpp"
#include "glue/timer.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What glue starts once all is cleared.
struct Start {
  wire::Launch launch;
  std::vector<Fd> fds;
  std::vector<int> signals;  // those that came before there was a child
};

// The stages of a job, in their order. Each but Running has a time limit.

// glue removes what an earlier job of the user left when that job's glue had no time to.
struct Clearing {
  Cleaning cleaning;
  std::optional<Start> start;  // nothing: the agent has asked for this alone (wire::Clear)
};
// The child has not reported yet.
struct Launching {};
struct Running {};
// Ending (pursuit.hpp): glue kills the processes that are left of the job.
// Cleaning (cleanup.hpp): glue removes what it left in shared places.
using Stage = std::variant<Clearing, Launching, Running, Ending, Cleaning>;

// A job from the message that asks for it to the one that ends it.
struct Job {
  Job(Loop& loop, Clearing first) : stage(std::move(first)), timer(loop) {}

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(stage);
  }
  // Whether its end has begun.
  bool ends() const { return is<Ending>() || is<Cleaning>(); }
  // What removes files now, or nullptr.
  Cleaning* cleaning() {
    auto* clearing = std::get_if<Clearing>(&stage);
    return clearing ? &clearing->cleaning : std::get_if<Cleaning>(&stage);
  }
  bool has_exited() const { return main && main->status(); }

  std::uint64_t number = 0;  // the agent's
  std::string name;          // as the log has it, in HTCondor's words, which come from the agent
  User user;
  Stage stage;
  Timer timer;                      // the timer of the stage
  std::optional<MainProcess> main;  // nothing: none was launched
  std::optional<Error> failure;     // why the launch failed; told once nothing is left of it
};

}  // namespace glidepod::glue
