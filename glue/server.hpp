#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "glue/agent_link.hpp"
#include "glue/launch.hpp"
#include "glue/links.hpp"
#include "glue/seccomp.hpp"
#include "glue/session.hpp"
#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

struct ServerOptions {
  std::string container;
  std::string run_directory = "/glidepod/run";
  std::string scratch_directory = "/glidepod/scratch";
  std::chrono::seconds grace{25};  // from SIGTERM to SIGKILL for a job
};

// A job from its Launch to the message that ends it.
struct Job {
  wire::Launch launch;
  Links links;
  Launched main;
  bool started = false;  // its program runs, or ran
  bool suspended = false;
  std::optional<ExitStatus> status;  // the main process has ended
  wire::JobEnded account;            // what is known so far
  std::map<std::uint64_t, OpenedSession> sessions;
};

// Runs jobs for the agent, one at a time, and leaves nothing of them behind.
class Server {
 public:
  Server(Loop& loop, ServerOptions options);

  // Until the agent says Finish (0) or SIGTERM or SIGINT comes (143): the program's exit code.
  Result<int> run();

 private:
  void on_frame(wire::Frame frame);
  void on_launch(wire::Launch launch, const std::vector<Fd>& fds);
  void on_signal(const wire::Signal& signal);
  void signal_main(int number);
  void on_finish();
  void on_agent_lost();
  void on_process_signal(int number);
  void on_terminate(int number);

  std::optional<LaunchFailure> begin(const std::vector<Fd>& fds);
  // Reads the child's report: Started, or the launch has failed and the job is gone.
  void on_report();
  void fail_launch(const LaunchFailure& failure);
  bool reap_children();
  void account_for(pid_t pid, int status, const rusage& usage);
  // Kills what is left of the job, cleans, reports. Returns when nothing of it is left.
  void end_job();
  void close_report();
  void leave(int exit_code);
  // server_sessions.cpp
  void on_open_session(const wire::OpenSession& message, const std::vector<Fd>& fds);
  void on_close_session(const wire::CloseSession& message);
  void on_session_report(std::uint64_t id);
  void take_session_report(std::uint64_t id, const SessionReport& report);
  void forget_sessions();

  Loop& loop_;
  ServerOptions options_;
  AgentLink link_;
  std::optional<Filter> filter_;
  std::optional<Job> job_;
  bool unclean_ = false;  // something of an earlier job is still here
  std::optional<int> leaving_;
  std::optional<Error> failure_;
};

}  // namespace glidepod::glue
