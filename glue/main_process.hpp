#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "glue/counting.hpp"
#include "glue/image.hpp"
#include "glue/job_sessions.hpp"
#include "glue/launch.hpp"
#include "glue/links.hpp"
#include "glue/memory.hpp"
#include "glue/seccomp.hpp"
#include "glue/suspension.hpp"
#include "lib/base/child.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// The time of CLOCK_REALTIME.
std::int64_t now_ns();

// A job's main process, from its launch until nothing of the job is left, and what goes on beside it. Its
// links are there as long as this object.
class MainProcess {
 public:
  MainProcess(Loop& loop, wire::Launch launch, Counting::Limits limits, const std::string& scratch,
              JobSessions::Tell tell);
  ~MainProcess() { close_report(); }
  MainProcess(const MainProcess&) = delete;
  MainProcess& operator=(const MainProcess&) = delete;

  // Forks; after an Error there is no process. fds: stdin, stdout, stderr, and the program if one is
  // attached. on_report: called when read_report() has something to tell.
  Result<void> start(Image& image, const std::vector<Fd>& fds, const Filter& filter,
                     const ControlGroup& memory, std::function<void()> on_report);
  // Whether nobody knows yet if its program runs.
  bool is_starting() const { return report_.valid(); }
  // Success: its program runs. An Error says why it does not. Nothing: neither is known.
  std::optional<Result<void>> read_report();
  // What it reports later is not read.
  void close_report();
  // The same for one that does not end when it is killed. The Error says so.
  Error give_up();

  // Brings it a signal of the agent's. Those that suspend and continue a job reach every process.
  void signal(int number);
  // Ends it by SIGTERM, unless the agent has sent a signal by which its owner or HTCondor has it end.
  void terminate();
  bool suspended() const { return suspension_.suspended(); }

  // From now on the caller ends all processes of the job. Returns the pid of the one that counts, or -1.
  pid_t hand_over();
  // To be called for each child of glue's that was reaped, but for one that cleans, with wait(2)'s status.
  // False: the child was no process of the job, but has counted for it.
  bool reaped(pid_t pid, int status, const rusage& usage);

  const wire::Launch& launch() const { return launch_; }
  pid_t pid() const { return child_.pid; }
  // Set when it has ended.
  const std::optional<ExitStatus>& status() const { return status_; }
  // What is told when it has ended. memory: the container's now.
  wire::Exited exited(const MemoryState& memory) const;
  // What is known so far of the job's end.
  wire::JobEnded& account() { return account_; }
  Counting& counting() { return counting_; }
  JobSessions& sessions() { return sessions_; }

 private:
  Loop& loop_;
  wire::Launch launch_;
  std::string scratch_;
  Links links_;
  MemoryState memory_;  // the container's, before the launch
  Launched child_;
  Fd report_;  // of the child
  bool told_ = false;
  std::optional<ExitStatus> status_;
  wire::JobEnded account_;
  Suspension suspension_;
  Counting counting_;
  JobSessions sessions_;
};

}  // namespace glidepod::glue
