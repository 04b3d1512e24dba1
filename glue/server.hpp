#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glue/agent_link.hpp"
#include "glue/cleanup.hpp"
#include "glue/counting.hpp"
#include "glue/image.hpp"
#include "glue/job.hpp"
#include "glue/memory.hpp"
#include "glue/processes.hpp"
#include "glue/seccomp.hpp"
#include "glue/shm_clearing.hpp"
#include "glue/timer.hpp"
#include "lib/base/loop.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

struct ServerOptions {
  std::string container;
  std::string run_directory = "/glidepod/run";
  std::string scratch_directory = "/glidepod/scratch";
  std::string programs_directory = "/glidepod/bin";  // where install() has put this program
  bool own_shm = false;                              // /dev/shm belongs to this container only
  bool empty = false;                                // the image has no file
  // The time from SIGTERM to SIGKILL for a job. HTCondor, and then the kubelet, usually end a job sooner.
  std::chrono::seconds grace{600};
  // The limits of glue's own waits; every wait has one.
  Milliseconds launch_limit = std::chrono::seconds(30);  // from fork to the job's first instruction
  Milliseconds end_limit = std::chrono::seconds(10);     // for a process that cannot be killed
  Cleaning::Limits cleaning;
  Counting::Limits counting;
};

// Runs jobs for the agent, one at a time, and leaves nothing of them behind. Only the loop waits. Clearing,
// launching, ending and cleaning are stages, each with a time limit, and every step of a stage is short.
class Server {
 public:
  Server(Loop& loop, ServerOptions options);

  // Runs until the agent says Finish (returns 0) or a signal orders it to end (143). Returns the program's
  // exit code.
  Result<int> run();

 private:
  void on_frame(wire::Frame frame);
  void on_launch(wire::Launch launch, std::vector<Fd> fds);
  void on_clear(const wire::Clear& clear);
  void on_signal(const wire::Signal& signal);
  void on_beat(const wire::Beat& beat);
  void on_open_session(const wire::OpenSession& message, const std::vector<Fd>& fds);
  void on_close_session(const wire::CloseSession& message);
  void on_finish();
  bool on_agent_lost();
  void on_process_signal(const signalfd_siginfo& info);
  void on_terminate(int number);
  void leave(int exit_code);

  // An Error says why there can be no job now, or not this session.
  Result<void> check_free() const;
  Result<void> open_session(const wire::OpenSession& message, const std::vector<Fd>& fds);
  void refuse(std::uint64_t job, const std::string& name, const Error& why);

  void take_on(std::uint64_t number, std::string name, const User& user, std::optional<Start> start);
  void begin(Start start);
  // Reads the child's report. Either sends Started, or the launch has failed and its end begins.
  void on_report();
  void reap_some();

  // server_end.cpp: the way from the main process's end, or the order to end it, to JobEnded
  void main_ended();
  void begin_end();
  void end_some();
  void clean_some();
  void cleaning_overdue();
  void cleared();
  void hurry();
  void finish_job();
  void launch_failed(const Error& why);
  void forget_job();

  Loop& loop_;
  ServerOptions options_;
  AgentLink link_;
  std::optional<Filter> filter_;
  std::optional<ControlGroup> control_group_;
  Image image_;
  ShmClearing shm_clearing_;
  std::optional<Job> job_;
  Children children_ = Children::none;
  Timer reap_timer_;
  bool hurry_ = false;    // the job's grace is over
  bool unclean_ = false;  // something of a job is left, which cannot be ended or removed
  std::optional<int> leaving_;
  std::optional<Error> failure_;
};

}  // namespace glidepod::glue
