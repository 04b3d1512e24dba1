#include "pilot-agent/apptainer/handover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "lib/base/file.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"
#include "pilot-agent/apptainer/chirp.hpp"
#include "pilot-agent/apptainer/set_aside.hpp"

namespace glidepod::apptainer {

namespace {

// Every signal that somebody may mean for the job. Not those that the kernel raises here for a fault of this
// program (SEGV and the like), nor CHLD and PIPE; TTIN and TTOU are about this process's terminal. KILL and
// STOP cannot be had: HTCondor sends them to all of a job's processes, and the agent sees the connection end.
std::vector<int> signals_to_pass_on() {
  std::vector<int> signals{SIGHUP,  SIGINT, SIGQUIT, SIGABRT,   SIGUSR1, SIGUSR2,  SIGALRM, SIGTERM, SIGCONT,
                           SIGTSTP, SIGURG, SIGXCPU, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO,   SIGPWR};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) signals.push_back(number);
  // What nohup or a shell's "&" made ignored stays so; blocked, the kernel would queue it all the same.
  std::erase_if(signals, [](int number) {
    struct sigaction current {};
    return ::sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
  });
  return signals;
}

class Handover {
 public:
  Handover(Loop loop, const HandoverOptions& options) : loop_(std::move(loop)), options_(options) {}

  Result<Outcome> run(const BindRequest& request) {
    // From here on a signal waits until the agent can be told of it.
    TRY(loop_.on_signals(signals_to_pass_on(), [this](const signalfd_siginfo& info) {
      on_signal(static_cast<int>(info.ssi_signo));
    }));
    auto connected = wire::connect_to(options_.socket);
    if (!connected && !options_.stands_for_job) return connected.error();
    if (!connected) {
      lose("cannot reach the pilot's agent: " + connected.error().message());
      TRY(loop_.run());
      return *outcome_;
    }
    Fd socket = std::move(connected.value());
    channel_ = TRY(wire::Channel::create(loop_, std::move(socket),
                                         {[this](const wire::Frame& frame) { on_frame(frame); },
                                          [this](const Error& reason) { on_closed(reason); }}));
    std::vector<int> fds{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    if (request.program) fds.push_back(request.program.get());
    // An agent that refuses early may have said why and closed already: what can be read tells more.
    if (auto sent = channel_->send(request.bind, fds); !sent) send_failure_ = sent.error();
    TRY(loop_.run());
    return *outcome_;
  }

  const wire::Ran& ran() const { return ran_; }

 private:
  void finish(Outcome outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
    loop_.stop();
  }

  void fail(std::string message) { finish(wire::Failed{wire::Fault::infrastructure, std::move(message)}); }

  void on_frame(const wire::Frame& frame) {
    if (outcome_) return;
    if (frame.type == wire::Type::ended) {
      const auto ended = frame.decode<wire::Ended>();
      if (ended) {
        ran_ = ended->ran;
        return finish(ended->status);
      }
    } else if (frame.type == wire::Type::failed) {
      auto failed = frame.decode<wire::Failed>();
      if (failed) return finish(*std::move(failed));
    }
    fail("the pilot's agent sent a message that apptainer does not understand");
  }

  void on_closed(const Error& reason) {
    channel_.reset();
    if (outcome_) return;
    std::string why = send_failure_ ? send_failure_->message() : reason.message();
    lose("lost the connection to the pilot's agent before the job ended" + (why.empty() ? "" : ": " + why));
    // A request that never got through started nothing: there is no end to protect but the job's own.
    if (send_failure_ && !options_.stands_for_job) fail(*lost_);
  }

  void lose(std::string why) {
    lost_ = std::move(why);
    loop_.after(options_.stay_without_agent, [this] { fail(*lost_); });
  }

  void on_signal(int number) {
    // The job may be gone or going. Whoever wants this process to end now shall have it.
    if (lost_ && number != SIGCONT && number != SIGTSTP && number != SIGWINCH && number != SIGURG)
      return fail(*lost_);
    // A failed send means a lost agent, which reading tells.
    if (channel_ && wire::takes_signal(*channel_, number))
      (void)channel_->send(wire::Signal{.number = number});
    // On a terminal, ^Z stops the job there and, as of any program, this process here, so that the shell gets
    // its terminal back. SIGCONT continues this process by itself and then the job.
    if (number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
  }

  Loop loop_;
  const HandoverOptions& options_;
  std::unique_ptr<wire::Channel> channel_;
  std::optional<Error> send_failure_;
  std::optional<std::string> lost_;
  std::optional<Outcome> outcome_;
  wire::Ran ran_;
};

// What HTCondor's starter looks at next: the sandbox, which must have nothing that it would wait for, and the
// job's ad.
void leave_in_order(const std::string& sandbox, const wire::Ran& ran, Milliseconds limit) {
  // As HTCondor names sandboxes. Whoever else calls this program may have any folder as its working
  // directory.
  const bool starters = sandbox.substr(sandbox.rfind('/') + 1).starts_with("dir_");
  const auto aside = starters ? set_aside(sandbox) : SetAside();
  auto names = fmt::format("{}", fmt::join(aside.names, ", "));
  if (aside.count > aside.names.size())
    names += fmt::format(" and {} more", aside.count - aside.names.size());
  if (!names.empty()) {
    const Fd errors(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
    // Nobody is left to tell if this fails.
    (void)write_all(
        errors,
        fmt::format("apptainer: not brought back (pipes, sockets, devices or links to them): {}\n", names));
  }
  if (!ran.container.empty() || !names.empty()) (void)tell_job_ad(sandbox, ran, names, limit);
}

}  // namespace

Result<Outcome> hand_over(const BindRequest& request, const HandoverOptions& options) {
  Handover handover(TRY(Loop::create()), options);
  auto outcome = handover.run(request);
  // How the job ended counts, whether or not its ad can be told where it ran.
  if (options.stands_for_job && !request.bind.work_directory.empty())
    leave_in_order(request.bind.work_directory, handover.ran(), options.tell_limit);
  return outcome;
}

Result<void> open_missing_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // Standard streams stay open for as long as the process lives, so no Fd owns them.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
      return Error::system("open /dev/null as descriptor {}", fd);
  }
  return {};
}

}  // namespace glidepod::apptainer
