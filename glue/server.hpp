#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "glue/agent_link.hpp"
#include "glue/cleanup.hpp"
#include "glue/counting.hpp"
#include "glue/image.hpp"
#include "glue/launch.hpp"
#include "glue/links.hpp"
#include "glue/memory.hpp"
#include "glue/processes.hpp"
#include "glue/pursuit.hpp"
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
  std::string programs_directory = "/glidepod/bin";  // where install() has put this program
  bool own_shm = false;                              // /dev/shm belongs to this container only
  // The time from SIGTERM to SIGKILL for a job. HTCondor, and then the kubelet, usually end a job sooner.
  std::chrono::seconds grace{600};
  // The limits of glue's own waits; every wait has one.
  Milliseconds launch_limit = std::chrono::seconds(30);  // from fork to the job's first instruction
  Milliseconds end_limit = std::chrono::seconds(10);     // for a process that cannot be killed
  Cleaning::Limits cleaning;
  Counting::Limits counting;
};

// A job from its Launch to the message that ends it.
struct Job {
  enum class Stage : std::uint8_t {
    clearing,   // glue removes what an earlier job of its user left when that job's glue had no time to
    launching,  // its child has not reported yet
    running,
    ending,    // glue kills the processes that are left of it
    cleaning,  // glue removes what it left in shared places
  };
  Stage stage = Stage::clearing;
  wire::Launch launch;
  std::vector<Fd> fds;             // the launch's descriptors, until the child has them
  std::vector<int> early_signals;  // the signals that came before there was a child
  Links links;
  Launched main;
  Fd report;  // the report pipe of main, until its program runs
  bool suspended = false;
  bool told = false;  // the agent has sent a signal by which its owner or HTCondor orders it to end
  std::optional<ExitStatus> status;  // set when the main process has ended
  std::optional<Error> failure;      // why the launch failed; told once the child is gone
  wire::JobEnded account;            // what is known so far
  MemoryState memory;                // the container's, before the job
  std::map<std::uint64_t, OpenedSession> sessions;
  std::optional<Pursuit> pursuit;  // a signal on its way to every process
  SteadyTime pursuit_until;
  Loop::TimerId pursuit_timer = 0;
  std::optional<Counting> counting;  // set once a Beat has asked
  Loop::TimerId counting_timer = 0;
  std::optional<Ending> ending;
  std::optional<Cleaning> cleaning;
  bool cleaning_moved = false;  // a child of the cleaning has ended
  Loop::TimerId timer = 0;      // the timer of the stage
};

// A job as the log names it, in HTCondor's words, which come from the agent.
std::string name_of(const wire::Launch& launch);
// The time of CLOCK_REALTIME.
std::int64_t now_ns();

// Runs jobs for the agent, one at a time, and leaves nothing of them behind. Only the loop waits. Clearing,
// launching, ending and cleaning are stages, each with a time limit, and every step of a stage is short.
class Server {
 public:
  Server(Loop& loop, ServerOptions options);

  // Runs until the agent says Finish (returns 0) or a signal orders it to end (143). Returns the program's
  // exit code.
  Result<int> run();

 private:
  bool on_agent_lost();
  void on_frame(wire::Frame frame);
  void refuse(const wire::Launch& launch, wire::Fault fault, const std::string& message);
  // Begins a job. A launch without a program only clears.
  void take_on(wire::Launch launch, std::vector<Fd> fds);
  void on_signal(const wire::Signal& signal);
  void act_on(int number);
  void signal_main(int number);
  void on_beat(const wire::Beat& beat);
  void on_finish();
  void on_process_signal(const signalfd_siginfo& info);
  void on_terminate(int number);

  // server_begin.cpp: what is done before the agent hears of this container
  Result<void> clear_own_shm();
  void clear_own_shm_after(Milliseconds pause);
  bool was_shm_cleaner(pid_t pid);

  void begin();
  Result<void> fork_main();
  // Reads the child's report. Either sends Started, or the launch has failed and its end begins.
  void on_report();
  void on_launch_overdue();
  void pursue(int number);
  void pursue_on();
  void reap_some();
  void account_for(pid_t pid, int status, const rusage& usage);
  void close_report();
  void leave(int exit_code);
  void set_timer(Milliseconds delay, void (Server::*handler)());
  // server_end.cpp: the way from the main process's end, or the order to end it, to JobEnded
  void main_ended();
  void begin_end();
  void end_some();
  void begin_cleaning();
  void clean_some();
  void cleaning_overdue();
  void finish_job();
  void hurry();
  // server_beat.cpp
  void count_disk();
  bool was_count(pid_t pid);
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
  std::optional<ControlGroup> control_group_;
  Image image_;
  Worker shm_cleaner_;
  std::optional<Job> job_;
  Children children_ = Children::none;
  Loop::TimerId reap_timer_ = 0;
  bool hurry_ = false;    // the job's grace is over
  bool unclean_ = false;  // something of an earlier job is still in the container
  std::optional<int> leaving_;
  std::optional<Error> failure_;
};

}  // namespace glidepod::glue
