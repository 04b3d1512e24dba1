#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "lib/base/loop.hpp"

namespace glidepod::glue::simulate {

class World;

struct Process {
  enum class Kind : std::uint8_t { job, cleaner, counter, remover, supervisor, stranger };
  enum class State : std::uint8_t { runs, stopped, zombie };
  pid_t pid = 0, parent = 0;
  std::uint64_t start = 0;
  Kind kind = Kind::job;
  State state = State::runs;
  int status = 0;         // wait(2)'s, of a zombie
  bool dumps = false;     // writes a core dump: does not stop
  bool stuck = false;     // in the kernel: no signal acts
  bool killed = false;    // SIGKILL has come
  bool to_stop = false;   // SIGSTOP has, and acts when it comes out of the kernel
  int pending = 0;        // a signal that has come while it was stopped
  bool rude = false;      // ignores SIGTERM
  bool careless = false;  // does not reap
  bool phoenix = false, bomb = false;
  SteadyTime born{}, runs_since{};
  SteadyTime overdue{SteadyTime::max()};  // a worker's: it is killed by then
  int exit_status = -1;                   // at the end of what it is stuck in, if that is its exit
  int reports_to = -1;                    // its pipe's read end
  std::function<void()> at_end, at_term;
};

// The processes of the container, glue's below glue. Pids are few and so are used again soon.
class Tree {
 public:
  static constexpr pid_t k_glue = 1;
  explicit Tree(World& world) : world_(world) {}

  Process& fork(pid_t parent, Process::Kind kind);
  Process* find(pid_t pid, std::uint64_t start);
  Process* find(pid_t pid);
  // It ends, by itself or by a signal; its children go to the next that takes orphans.
  void end(Process& process, int status);
  // As kill(2) of it, which takes its time.
  void signal(Process& process, int number);
  // SIGCONT, by another process or the kernel: at once, and no SIGSTOP that is on its way acts.
  void wake(Process& process);
  // It comes out of the kernel.
  void release(Process& process);
  void erase(pid_t pid) { all_.erase(pid); }
  // What glue would see in /proc, zombies too.
  std::vector<Process*> descendants(pid_t root = k_glue);
  std::vector<Process*> children(pid_t parent);
  bool descends(const Process& process);
  // Calls it if the process still lives then.
  void later(const Process& process, std::chrono::microseconds wait, std::function<void(Process&)> what);

 private:
  pid_t heir_of(const Process& process);
  void bury(Process& process);

  World& world_;
  std::map<pid_t, Process> all_;
  pid_t last_pid_ = 2;
  std::uint64_t last_start_ = 0;
};

}  // namespace glidepod::glue::simulate
