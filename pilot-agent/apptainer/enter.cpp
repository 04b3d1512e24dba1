#include "pilot-agent/apptainer/enter.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"
#include "pilot-agent/apptainer/environment.hpp"
#include "pilot-agent/apptainer/request.hpp"
#include "pilot-agent/apptainer/terminal.hpp"

namespace glidepod::apptainer {

namespace {

constexpr int k_not_the_commands = 255;
constexpr std::array k_leaving = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

class Visit {
 public:
  explicit Visit(Loop loop) : loop_(std::move(loop)), terminal_(loop_) {}

  Result<ExitStatus> run(const wire::Enter& enter, const std::string& socket) {
    std::vector<int> signals(k_leaving.begin(), k_leaving.end());
    signals.push_back(SIGWINCH);
    TRY(loop_.on_signals(
        signals, [this](const signalfd_siginfo& info) { on_signal(static_cast<int>(info.ssi_signo)); }));
    Fd connection = TRY(wire::connect_to(socket));
    channel_ = TRY(wire::Channel::create(
        loop_, std::move(connection),
        {[this](wire::Frame frame) { on_frame(std::move(frame)); },
         [this](const Error&) { end(error("lost the connection to the pilot's agent")); }}));
    // Without a terminal sshd ends, when its user is cut off, and tells nobody.
    ::prctl(PR_SET_PDEATHSIG, SIGHUP);
    const std::vector<int> fds{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    TRY(channel_->send(enter, enter.request.terminal ? std::vector<int>() : fds));
    TRY(loop_.run());
    terminal_.leave();
    return std::move(*outcome_);
  }

 private:
  void end(Result<ExitStatus> outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
    loop_.stop();
  }

  void on_frame(wire::Frame frame) {
    if (frame.type == wire::Type::entered) {
      if (frame.fds.empty()) return;
      const auto joined = terminal_.join(std::move(frame.fds[0]));
      if (!joined) end(joined.error());
    } else if (frame.type == wire::Type::ended) {
      const auto ended = frame.decode<wire::Ended>();
      end(ended ? Result<ExitStatus>(ended->status) : Result<ExitStatus>(ended.error()));
    } else if (frame.type == wire::Type::failed) {
      const auto failed = frame.decode<wire::Failed>();
      end(error("{}", failed ? failed->message : failed.error().message()));
    }
  }

  // The agent sees the connection end, and so does the session.
  void on_signal(int number) {
    if (number == SIGWINCH) return terminal_.resize();
    end(ExitStatus::signaled(number));
  }

  Loop loop_;
  Terminal terminal_;
  std::unique_ptr<wire::Channel> channel_;
  std::optional<Result<ExitStatus>> outcome_;
};

Result<ExitStatus> visit(const std::vector<std::string>& arguments, const std::string& agent_socket) {
  const auto surroundings = Surroundings::of_this_process();
  ShellCall call = TRY(parse_shell_call(arguments, surroundings.environment));
  wire::Enter enter;
  enter.sandbox = std::move(call.sandbox);
  enter.request.command = std::move(call.command);
  enter.request.environment = session_environment(surroundings.environment);
  enter.request.terminal = ::isatty(STDIN_FILENO) == 1;
  if (enter.request.terminal) {
    enter.request.modes = Terminal::modes();
    enter.request.rows = Terminal::size().ws_row;
    enter.request.columns = Terminal::size().ws_col;
  }
  Visit visit(TRY(Loop::create()));
  return visit.run(enter, agent_socket);
}

}  // namespace

Result<ShellCall> parse_shell_call(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment) {
  // As the user's shell: -c "job-shell SANDBOX". Called by another shell: SANDBOX.
  const bool as_shell = arguments.size() == 2 && arguments[0] == "-c";
  if (!as_shell && arguments.size() != 1) return error("only condor_ssh_to_job's sshd may call job-shell");
  const std::string& words = arguments.back();
  ShellCall call;
  call.sandbox = words.substr(words.rfind(' ') + 1);
  if (!call.sandbox.starts_with('/')) return error("'{}' names no job's sandbox", words);
  if (const char* command = find_variable(environment, "SSH_ORIGINAL_COMMAND")) call.command = command;
  return call;
}

std::vector<std::string> session_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> result;
  for (const auto& entry : environment)
    if (entry.starts_with("TERM=") || entry.starts_with("LANG=") || entry.starts_with("LC_"))
      result.push_back(entry);
  return result;
}

int exit_code(const ExitStatus& status) {
  return status.how == ExitStatus::How::exited ? status.number : 128 + status.number;
}

int enter_job(const std::vector<std::string>& arguments, const std::string& agent_socket) {
  const auto ended = visit(arguments, agent_socket);
  if (ended) return exit_code(ended.value());
  const Fd copy(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  // Nobody is left to tell if even this fails.
  (void)write_all(copy, "condor_ssh_to_job: " + one_line(ended.error().message()) + "\n");
  return k_not_the_commands;
}

}  // namespace glidepod::apptainer
