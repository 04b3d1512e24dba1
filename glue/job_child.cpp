#include "glue/job_child.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "glue/descriptors.hpp"
#include "glue/program_file.hpp"

namespace glidepod::glue {

namespace {

constexpr int k_first_unused_fd = 3;

class JobChild {
 public:
  explicit JobChild(const ChildPlan& plan) : plan_(plan) {}

  [[noreturn]] void run() {
    require(Step::session, ::setsid() < 0 ? errno : 0);
    // Writing it needs root's ownership of /proc/self, and failing is no reason not to run.
    raise_oom_score();
    require(Step::descriptors, place_descriptors());
    if (plan_.terminal) require(Step::terminal, ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0 ? errno : 0);
    require(Step::bounding_set, drop_bounding_set());
    require(Step::user, become(plan_.user));
    require(Step::capabilities, drop_capabilities());
    require(Step::no_new_privileges, ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? errno : 0);
    // If glue is killed, by the OOM killer say, its job must not outlive it. Forgotten at a change of user,
    // hence only now.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan_.parent) ::_exit(127);
    ::umask(plan_.umask & 0777);
    require(Step::directory, ::chdir(plan_.cwd.c_str()) != 0 ? errno : 0);
    require(Step::marker, create_marker());
    require(Step::limits, set_limits());
    require(Step::filter, plan_.filter->load());
    // Every disposition is at its default already: glue has no handlers.
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    execute();
  }

 private:
  void require(Step step, int code) const {
    if (code != 0) fail({.step = step, .code = code});
  }
  [[noreturn]] void fail(const ChildReport& report) const {
    // The marker says "what follows is the job's own doing": a missing program is, a lack of memory is not.
    if (report.step > Step::marker && (report.step != Step::program || is_passing(report.code)))
      if (!plan_.marker.empty()) ::unlink(plan_.marker.c_str());
    [[maybe_unused]] const auto written = ::write(plan_.report_fd, &report, sizeof report);
    ::_exit(127);
  }

  void raise_oom_score() const {
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    [[maybe_unused]] const auto written =
        ::write(fd, plan_.oom_score_adjustment.data(), plan_.oom_score_adjustment.size());
    ::close(fd);
  }

  int place_descriptors() const {
    for (int target = 0; target < 3; ++target)
      if (::dup2(plan_.stdio[static_cast<std::size_t>(target)], target) < 0) return errno;
    // Glue opens everything close-on-exec; this also covers what a container runtime may have left open.
    close_at_exec_from(k_first_unused_fd);
    return 0;
  }

  int set_limits() const {
    for (const auto& limit : plan_.limits) {
      const auto resource = static_cast<__rlimit_resource>(limit.resource);
      rlimit own{};
      if (::getrlimit(resource, &own) != 0) return errno;
      own.rlim_max = std::min<rlim_t>(limit.hard, own.rlim_max);
      own.rlim_cur = std::min<rlim_t>(limit.soft, own.rlim_max);
      if (::setrlimit(resource, &own) != 0) return errno;
    }
    return 0;
  }

  int create_marker() const {
    if (plan_.marker.empty()) return 0;
    const int fd =
        ::open(plan_.marker.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd >= 0) {
      ::close(fd);
      return 0;
    }
    const int code = errno;
    // Something of the user's, who has this folder: a folder, a pipe, a link, a file that nobody may write.
    struct stat info {};
    const bool there = ::lstat(plan_.marker.c_str(), &info) == 0;
    return there && (!S_ISREG(info.st_mode) || code == EACCES) ? EEXIST : code;
  }

  // As the C library's execvpe, but only text goes to /bin/sh, and it tells which file it was.
  [[noreturn]] void execute() const {
    ChildReport report{.step = Step::program};
    if (plan_.program_fd >= 0) {
      ::syscall(SYS_execveat, plan_.program_fd, "", plan_.argv.data(), plan_.environment.data(),
                AT_EMPTY_PATH);
      report.code = errno;
      fail(report);
    }
    report.code = ENOENT;
    for (std::size_t i = 0; i < plan_.candidates.size(); ++i) {
      const char* file = plan_.candidates[i].c_str();
      auto words = plan_.argv;
      if (plan_.own_names) words[0] = const_cast<char*>(file);
      ::execve(file, words.data(), plan_.environment.data());
      int code = errno;
      if (code == ENOEXEC && is_text(file))
        code = execute_in_shell(file);
      else if (code == EIO && is_cut_short(file))
        code = ENOEXEC;
      const bool present = ::access(file, F_OK) == 0;
      // Not there, or in a folder closed to the user: the next folder of the path may have it.
      if (!present && plan_.candidates.size() > 1) continue;
      report = {
          .step = Step::program, .code = code, .candidate = present ? static_cast<std::int32_t>(i) : -1};
      // As in the C library, a file that may not be executed does not hide a later one.
      if (code != EACCES) break;
    }
    if (report.code == ENOENT && report.candidate >= 0)
      read_interpreter(plan_.candidates[static_cast<std::size_t>(report.candidate)].c_str(),
                       report.interpreter);
    fail(report);
  }

  // A script without a first line for the kernel is run by the image's shell, as shells and Apptainer do it.
  // Returns the error to tell: where there is no shell, the file's own.
  int execute_in_shell(const char* file) const {
    static std::array<char, 8> shell = {"/bin/sh"};
    std::vector<char*> words = {shell.data(), const_cast<char*>(file)};
    words.insert(words.end(), plan_.argv.begin() + 1, plan_.argv.end());
    ::execve(shell.data(), words.data(), plan_.environment.data());
    const int code = errno;
    const bool its_own = code == EIO ? !is_cut_short(shell.data()) : is_passing(code) || code == E2BIG;
    return its_own ? code : ENOEXEC;
  }

  const ChildPlan& plan_;
};

// Becomes the job.
[[noreturn]] void run_child(const ChildPlan& plan) {
  JobChild(plan).run();
}

}  // namespace

bool is_passing(int code) {
  return code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE || code == EIO ||
         code == ETXTBSY || code == ESTALE || code == EINTR;
}

pid_t start_child(const ChildPlan& plan) {
  const std::vector<gid_t>& groups = plan.user.groups;
  if (::geteuid() != 0 || groups.empty()) {
    const pid_t child = ::fork();
    if (child == 0) run_child(plan);
    return child;
  }
  // Groups are inherited: a process between glue and the job has them first. It shares glue's memory, which
  // spares a copy, and glue waits until it has ended; its child has a copy, and glue as its parent. The
  // kernel writes that child's number, so that no end of the one between loses it.
  // NOLINTBEGIN(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork): system calls and
  // nothing else
  pid_t child = -1;
  volatile int failure = 0;
  const pid_t between = ::vfork();
  if (between == 0) {
    long born = ::syscall(SYS_setgroups, groups.size(), groups.data());
    if (born == 0)
      born = ::syscall(SYS_clone, CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD, nullptr, &child, 0, 0);
    if (born == 0) run_child(plan);
    failure = born < 0 ? errno : 0;
    ::_exit(0);
  }
  // NOLINTEND(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork)
  if (between < 0) return -1;
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (child < 0) errno = failure != 0 ? failure : EAGAIN;
  return child;
}

}  // namespace glidepod::glue
