#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod {

// How a process ended: with an exit code, or by a signal. Never both, never guessed from 128+n.
struct ExitStatus {
  enum class How : std::uint8_t { exited, signaled };
  How how = How::exited;
  int number = 0;  // the exit code or the signal
  bool core = false;

  static ExitStatus exited(int code) { return {How::exited, code, false}; }
  static ExitStatus signaled(int signal, bool core = false) { return {How::signaled, signal, core}; }
  // From wait(2)'s status of a process that ended.
  static ExitStatus from_wait(int status);

  bool success() const { return how == How::exited && number == 0; }
  // "exit code 3", "signal 11 (SEGV, core dumped)".
  std::string to_string() const;
  bool operator==(const ExitStatus&) const = default;
};

// For code that reaps with wait4(2). A process that has made its parent its tracer (PTRACE_TRACEME) stops at
// every signal until the parent lets it go on, and wait4 reports these stops. Returns true if this status was
// such a stop. The process is then released, and goes on with the signal as if it had never been traced.
bool let_go(pid_t pid, int status);

struct Ended {
  ExitStatus status;
  rusage usage{};
};

// For exec: pointers to the strings, then a null pointer. They are valid as long as the strings.
std::vector<char*> exec_pointers(const std::vector<std::string>& strings);

// A direct child process, known by pid and pidfd. Destroying this object neither kills nor reaps the process.
class Child {
 public:
  struct Options {
    std::vector<std::string> argv;
    std::vector<std::string> environment;  // KEY=VALUE; empty: this process's own
    int stdin_fd = -1;                     // -1: inherit
    int stdout_fd = -1;
    int stderr_fd = -1;
    int parent_death_signal = 0;
    struct Limit {
      int resource;  // RLIMIT_...
      rlim_t most;
    };
    std::vector<Limit> limits;  // of what it may have, soft and hard
  };
  // Starts argv, searched in PATH, with every signal unblocked and at its default. An exec that fails is an
  // Error.
  static Result<Child> spawn(const Options& options);

  // Forks; body runs in the child and its return value is the exit code. The child never returns from here.
  static Result<Child> fork(const std::function<int()>& body);

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended.
  const Fd& pidfd() const { return pidfd_; }
  Result<void> signal(int number) const;
  // Blocks until the process has ended, and reaps it. Stops of the process do not end the wait.
  Result<Ended> wait();
  // Waits for at most this long. If the process has not ended by then, kills it and returns nothing.
  Result<std::optional<Ended>> wait(std::chrono::milliseconds limit);

 private:
  Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  static Result<Child> adopt(pid_t pid);
  pid_t pid_ = -1;
  Fd pidfd_;
};

}  // namespace glidepod
