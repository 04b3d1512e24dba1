#pragma once

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod {

using SteadyTime = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

// Waits in epoll for descriptors, signals and timers and calls their handlers, one at a time, in the thread
// that runs it. With no timer set it never wakes by itself. Handlers may add and remove anything, themselves
// included.
class Loop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  using TimerId = std::uint64_t;  // 0 is no timer

  static Result<Loop> create();
  static SteadyTime now();

  Result<void> watch(int fd, std::uint32_t events, Handler handler);
  Result<void> change(int fd, std::uint32_t events);
  // To be called before the descriptor is closed.
  void forget(int fd);

  TimerId after(Milliseconds delay, std::function<void()> handler);
  void cancel(TimerId timer);

  // Blocks these signals in this thread, and in what it starts later, and hands them to the handler. May be
  // called once per loop.
  Result<void> on_signals(const std::vector<int>& signals,
                          std::function<void(const signalfd_siginfo&)> handler);

  // From now on the kernel ends this process by SIGALRM if the handlers of one turn take longer than this
  // together. While the loop waits, no timer is set.
  void end_if_stuck_for(Milliseconds limit) { longest_turn_ = limit; }

  // Runs until stop() or until epoll fails.
  Result<void> run();
  // Waits once, at most this long (negative: without limit), and handles what came.
  Result<void> run_once(Milliseconds limit);
  void stop() { running_ = false; }

 private:
  explicit Loop(Fd epoll) : epoll_(std::move(epoll)) {}
  int next_timeout(Milliseconds limit) const;
  void run_due_timers();
  void watch_turn(Milliseconds limit) const;

  Fd epoll_;
  Fd signals_;
  bool running_ = false;
  Milliseconds longest_turn_{0};  // 0: no limit
  std::map<int, std::shared_ptr<Handler>> handlers_;
  TimerId last_timer_ = 0;
  std::map<std::pair<SteadyTime, TimerId>, std::function<void()>> timers_;
};

}  // namespace glidepod
