#include "lib/base/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glidepod {

ExitStatus ExitStatus::from_wait(int status) {
  if (WIFSIGNALED(status)) return signaled(WTERMSIG(status), WCOREDUMP(status));
  return exited(WEXITSTATUS(status));
}

bool let_go(pid_t pid, int status) {
  if (!WIFSTOPPED(status)) return false;
  siginfo_t info{};
  // A group stop has no signal to pass on, since the group goes on by itself.
  int number = ::ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info) == 0 ? WSTOPSIG(status) : 0;
  // The trap that a tracer sees at execve(2) has none either. It looks as if the process had sent it to
  // itself.
  if (number == SIGTRAP && info.si_code == SI_USER && info.si_pid == pid) number = 0;
  ::ptrace(PTRACE_DETACH, pid, nullptr, static_cast<std::intptr_t>(number));
  return true;
}

std::string ExitStatus::to_string() const {
  if (how == How::exited) return fmt::format("exit code {}", number);
  const char* name = sigabbrev_np(number);
  return fmt::format("signal {} ({}{})", number, name ? name : "?", core ? ", core dumped" : "");
}

namespace {

// A child starts with no signal blocked or ignored, whatever its parent does with signals.
void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool place(int from, int to) {
  return from < 0 || (from == to ? ::fcntl(to, F_SETFD, 0) : ::dup2(from, to)) >= 0;
}

bool set_limits(const std::vector<Child::Options::Limit>& limits) {
  for (const auto& [resource, most] : limits) {
    const rlimit limit{most, most};
    if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return false;
  }
  return true;
}

// Shares its parent's memory until it executes: it makes system calls and nothing else.
[[noreturn]] void exec_child(const Child::Options& options, char** argv, char** environment,
                             volatile int& failure) {
  reset_signals();
  const bool ready =
      (options.parent_death_signal == 0 || ::prctl(PR_SET_PDEATHSIG, options.parent_death_signal) == 0) &&
      place(options.stdin_fd, 0) && place(options.stdout_fd, 1) && place(options.stderr_fd, 2) &&
      set_limits(options.limits);
  if (ready) ::execvpe(argv[0], argv, options.environment.empty() ? environ : environment);
  failure = errno;
  ::_exit(127);
}

}  // namespace

std::vector<char*> exec_pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const auto& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

Result<Child> Child::adopt(pid_t pid) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by itself
  if (!pidfd) return Error::system("pidfd of process {}", pid);
  return Child(pid, std::move(pidfd));
}

Result<Child> Child::spawn(const Options& options) {
  auto argv = exec_pointers(options.argv);
  auto environment = exec_pointers(options.environment);

  // A copy of a large process's memory would take longer than all else. Until the child has its own no signal
  // comes in, since its handlers would run in ours.
  // NOLINTBEGIN(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork)
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  volatile int failure = 0;
  const pid_t pid = ::vfork();
  if (pid == 0) exec_child(options, argv.data(), environment.data(), failure);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // NOLINTEND(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork)
  if (pid < 0) return Error::system("fork for {}", options.argv[0]);
  if (failure != 0) {
    ::waitpid(pid, nullptr, 0);
    return Error(fmt::format("start {}", options.argv[0]), failure);
  }
  return adopt(pid);
}

Result<Child> Child::fork(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid < 0) return Error::system("fork");
  if (pid == 0) ::_exit(body());
  return adopt(pid);
}

Result<void> Child::signal(int number) const {
  if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) != 0)
    return Error::system("signal {} to process {}", number, pid_);
  return {};
}

Result<std::optional<Ended>> Child::wait(std::chrono::milliseconds limit) {
  pollfd end{pidfd_.get(), POLLIN, 0};
  const int ended = ::poll(&end, 1, static_cast<int>(limit.count()));
  if (ended < 0 && errno != EINTR) return Error::system("poll");
  if (ended != 0) return std::optional(TRY(wait()));
  TRY(signal(SIGKILL));
  TRY(wait());
  return std::optional<Ended>();
}

Result<Ended> Child::wait() {
  int status = 0;
  Ended ended;
  pid_t got;
  do got = ::wait4(pid_, &status, 0, &ended.usage);
  while ((got < 0 && errno == EINTR) || (got > 0 && let_go(pid_, status)));
  if (got < 0) return Error::system("wait for process {}", pid_);
  ended.status = ExitStatus::from_wait(status);
  return ended;
}

}  // namespace glidepod
