#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "pilot-agent/supervisor.hpp"

namespace glidepod::agent {

// Ends HTCondor so that the access point learns what became of each job. A starter whose job has not begun
// ends without a word when it is told to. Its shadow then looks for it, and finds no startd, or one without
// the claim; so the queue has the job as running until its lease is over (40 minutes; ShadowLog: "sleeping
// for remaining lease duration"). One whose bind is refused (Core::drain) tells its shadow. So those that are
// at it, or are about to be when their input is there, get the time for that before the command is told to
// end.
class Drain {
 public:
  struct Times {
    Milliseconds say{20'000};  // for starters to come to their bind, and to tell their shadows
    Milliseconds end{2'000};   // left for the command to end
  };
  // has_begun: whether this starter's job has begun, whatever it is at now. file: what HTCondor reads as
  // configuration, Settings::trouble_config; without one the command is told to end at once.
  Drain(Loop& loop, Supervisor& supervisor, std::function<bool(pid_t)> has_begun, std::string file,
        Times times);
  ~Drain();
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Has the command, which runs, end within that time; further calls change nothing.
  void begin(std::chrono::seconds grace);
  // Calls done, from the loop, once the command has no starter: none that brings its job's files back either.
  void when_free(std::function<void()> done);

 private:
  std::vector<pid_t> unbegun() const;
  bool take_no_more();
  void look();
  void look_for_free();

  Loop& loop_;
  Supervisor& supervisor_;
  std::function<bool(pid_t)> has_begun_;
  std::string file_;
  Times times_;
  Loop::TimerId timer_ = 0;
  SteadyTime deadline_, last_look_;
  bool begun_ = false;
  std::function<void()> free_;
  Loop::TimerId free_timer_ = 0;
};

}  // namespace glidepod::agent
