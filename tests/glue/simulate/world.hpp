#pragma once

#include <sys/resource.h>
#include <sys/signalfd.h>

#include <deque>
#include <map>
#include <set>
#include <string>

#include "glue/server.hpp"
#include "tests/glue/simulate/agent.hpp"
#include "tests/glue/simulate/tree.hpp"
#include "tests/glue/simulate/truth.hpp"
#include "tests/glue/simulate/weather.hpp"
#include "tests/simulate/clock.hpp"

namespace glidepod::glue::simulate {

using Micro = std::chrono::microseconds;

// A property that did not hold.
struct Failure {
  std::string what;
};

// The rest of the world for one glue: time, processes, pipes, signals and the agent. The functions that glue
// calls for them are in ports*.cpp, which the linker takes in place of glue's own.
class World {
 public:
  World(std::uint64_t seed, bool tell);
  ~World();
  static World& current();
  static bool exists();

  // Runs glue until it leaves. What did not hold, or nothing.
  std::string run();

  SteadyTime now() const { return clock.now(); }
  void later(Micro wait, std::function<void()> what) { clock.at(now() + wait, std::move(what)); }
  // Mostly short.
  Micro micro(std::int64_t low, std::int64_t high);
  void note(const std::string& line);
  [[noreturn]] void fail(const std::string& what) const;
  void check(bool holds, const std::string& what) const {
    if (!holds) fail(what);
  }

  // While glue makes a call, the others go on.
  void pass_call();
  void pass(Micro time);
  // Waits as epoll does, until something is ready or this time; false: never.
  void wait_until(const std::optional<SteadyTime>& timer, const std::function<bool()>& ready);
  // From a wake-up to the next sleep of glue's.
  void begin_turn();
  void end_turn(std::size_t timers, std::size_t watches);

  // What glue needs is not there, and never will be. It ends.
  bool breaks(int chance) { return broken_ = broken_ || random.chance(chance); }

  void raise(int number);
  std::vector<signalfd_siginfo> take_signals(std::size_t most);
  // The read end; the write end is the next number.
  int open_pipe();
  void put(int pipe, std::string record);
  void close_pipe(int pipe);
  struct Pipe {
    std::deque<std::string> records;
    bool open = true;
  };
  Pipe* pipe(int fd);
  bool ready(int fd) const;
  int new_fd() { return last_fd_ += 2; }

  static constexpr int k_signals = 1 << 30;

  // life.cpp: what the job's processes do, and glue's own children
  void begin_job(Process& main);
  void run_program(Process& main);
  void live(Process& process);
  // Some do something just now.
  void stir();
  void begin_cleaner(Process& cleaner, bool as_root);
  void begin_counter(Process& counter);
  void begin_remover(Process& remover);
  void begin_session(Process& supervisor, std::uint64_t id);
  // What a process has used.
  rusage usage();
  void lose_glues();

  Random random;
  Weather weather;
  ::glidepod::simulate::Clock clock;
  Tree tree;
  Truth truth;
  Agent agent;
  ServerOptions options;
  int files = 0, stubborn_files = 0;  // of the job's, in shared folders; those that only root can remove
  int shm_files = 0;                  // of an earlier job's, in the container's own /dev/shm
  int folder_watch = -1;
  std::map<int, std::pair<pid_t, std::uint64_t>> opened;  // processes by descriptor
  std::size_t held = 0;                                   // messages that glue keeps back
  std::uint64_t writes = 0;                               // to the agent, each of one message or some

 private:
  void act(Process& process);
  void again(Process& process);
  void ends(Process& process);

  const bool tell_;
  int last_fd_ = k_signals;
  std::map<int, Pipe> pipes_;
  std::set<int> signals_;
  std::size_t calls_ = 0;
  SteadyTime turn_began_;
  int rebirths_ = 1500;
  bool broken_ = false;
};

}  // namespace glidepod::glue::simulate
