#include "glue/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "glue/descriptors.hpp"
#include "glue/launch.hpp"
#include "glue/pursuit.hpp"

namespace glidepod::glue {

namespace {

constexpr const char* k_shell = "/bin/sh";
constexpr const char* k_comfortable_shell = "/bin/bash";
// As for a job: what hangs in the kernel is left to the job's end.
constexpr Milliseconds k_end_limit = std::chrono::seconds(10);
// From fork to the program's first instruction.
constexpr int k_start_limit = 30000;

struct Terminal {
  Fd master, slave;
};

// The slave side belongs to whoever opens the master, as the kernel takes it from the file system user, and
// glue has no right to give it away later.
Fd open_master(const User& user) {
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  ::setfsuid(user.uid);
  Fd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int code = errno;
  ::setfsuid(::geteuid());
  // The change of user has set this to the machine's default, which may be anything.
  ::prctl(PR_SET_DUMPABLE, dumpable == 1 ? 1 : 0);
  errno = code;
  return master;
}

Result<Terminal> open_terminal(const User& user, const wire::SessionRequest& request) {
  Terminal terminal;
  terminal.master = open_master(user);
  if (!terminal.master) return Error::system("open /dev/ptmx");
  int locked = 0;
  if (::ioctl(terminal.master.get(), TIOCSPTLCK, &locked) != 0) return Error::system("unlock a terminal");
  // Not by its name: that would need a right to the user's file.
  terminal.slave.reset(::ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave) return Error::system("open a terminal");
  // A terminal of a strange size or mode is one all the same.
  if (request.rows != 0 && request.columns != 0) {
    const winsize size{.ws_row = request.rows, .ws_col = request.columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(terminal.master.get(), TIOCSWINSZ, &size);
  }
  termios modes{};
  if (request.modes.size() == sizeof modes) {
    std::memcpy(&modes, request.modes.data(), sizeof modes);
    ::tcsetattr(terminal.slave.get(), TCSANOW, &modes);
  }
  return terminal;
}

void tell(int fd, const SessionReport& report) {
  [[maybe_unused]] const auto written = ::write(fd, &report, sizeof report);
}

// Every signal is blocked already, as glue has them; ends when the session's main process has ended, or at
// SIGTERM.
ExitStatus wait_for_end(pid_t main, pid_t glue) {
  std::optional<ExitStatus> status;
  const Reaped reaped = [&](pid_t pid, int how, const rusage&) {
    if (pid == main) status = ExitStatus::from_wait(how);
  };
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  const timespec at_once{};
  // SIGTERM is the first of the two, whichever came first.
  for (Children children = Children::living; !status && ::getppid() == glue;) {
    const int got = children == Children::unknown ? ::sigtimedwait(&awaited, nullptr, &at_once)
                                                  : ::sigwaitinfo(&awaited, nullptr);
    if (got == SIGTERM) break;
    children = reap(k_reaped_at_once, reaped);
  }
  end_descendants(k_end_limit, reaped);
  return status.value_or(ExitStatus::signaled(SIGKILL));
}

[[noreturn]] void supervise(Prepared& prepared, int report, pid_t glue) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != glue) ::_exit(1);
  int inner[2];
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || ::pipe2(inner, O_CLOEXEC) != 0) ::_exit(1);
  prepared.plan.report_fd = inner[1];
  prepared.plan.parent = ::getpid();
  const pid_t main = start_child(prepared.plan);
  if (main < 0) {
    tell(report, {.what = SessionReport::What::failed,
                  .failure = {.step = Step::session, .code = errno},
                  .status = {}});
    ::_exit(1);
  }
  ::close(inner[1]);
  SessionReport first;
  pollfd start{.fd = inner[0], .events = POLLIN, .revents = 0};
  if (::poll(&start, 1, k_start_limit) == 0) {
    ::kill(main, SIGKILL);
    first.what = SessionReport::What::failed;
    first.failure = {.step = Step::session, .code = ETIMEDOUT};
  } else if (::read(inner[0], &first.failure, sizeof first.failure) == sizeof first.failure) {
    first.what = SessionReport::What::failed;
  }
  close_all_but(report);
  tell(report, first);
  if (first.what == SessionReport::What::failed) ::_exit(1);
  const ExitStatus status = wait_for_end(main, glue);
  tell(report, {.what = SessionReport::What::ended, .failure = {}, .status = status});
  ::_exit(0);
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> program_of(const std::string& command) {
  if (!command.empty()) return {k_shell, "-c", command};
  // Only which name is tried: the program is looked for, and run, as the user.
  return {::access(k_comfortable_shell, X_OK) == 0 ? k_comfortable_shell : k_shell};
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

}  // namespace

Result<void> check_session(const wire::OpenSession& message, std::size_t fds) {
  if (message.session == 0) return error("a session without a number");
  if (fds != (message.request.terminal ? 0U : 3U)) return error("a session without its descriptors");
  if (has_nul(message.request.command) || std::ranges::any_of(message.request.environment, has_nul))
    return error("a session with a NUL byte in a text");
  return {};
}

std::vector<std::string> replace_variables(std::vector<std::string> environment,
                                           const std::vector<std::string>& with) {
  std::erase_if(environment, [&](const std::string& entry) {
    return std::ranges::any_of(with, [&](const auto& other) { return name_of(other) == name_of(entry); });
  });
  environment.insert(environment.end(), with.begin(), with.end());
  return environment;
}

wire::Launch launch_of_session(const wire::Launch& job, const wire::SessionRequest& request) {
  wire::Launch launch = job;
  launch.argv = program_of(request.command);
  launch.environment = replace_variables(job.environment, request.environment);
  launch.launched_marker.clear();
  launch.program_attached = launch.runscript = false;
  return launch;
}

Result<OpenedSession> open_session(wire::Launch launch, const wire::SessionRequest& request,
                                   const std::vector<Fd>& fds, const Filter& filter) {
  OpenedSession session;
  session.launch = std::move(launch);
  Terminal terminal;
  if (request.terminal) terminal = TRY(open_terminal(user_of(session.launch), request));
  std::array<int, 3> stdio;
  for (std::size_t i = 0; i < stdio.size(); ++i)
    stdio[i] = request.terminal ? terminal.slave.get() : fds[i].get();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Error::system("pipe");
  session.report.reset(ends[0]);
  const Fd report(ends[1]);
  Prepared prepared = prepare(session.launch, stdio, -1, filter);
  prepared.plan.terminal = request.terminal;
  session.candidates = prepared.plan.candidates;
  const pid_t glue = ::getpid();
  session.supervisor = ::fork();
  if (session.supervisor < 0) return Error::system("fork");
  if (session.supervisor == 0) supervise(prepared, report.get(), glue);
  session.terminal = std::move(terminal.master);
  return session;
}

Error explain_session(const ChildReport& report, const OpenedSession& session, const std::string& scratch) {
  if (report.step == Step::program && report.candidate < 0 && report.code == ENOENT)
    return error("the job's image has no shell ({}), which condor_ssh_to_job needs", k_shell)
        .with(wire::Fault::user);
  return explain(report, session.launch, session.candidates, scratch);
}

}  // namespace glidepod::glue
