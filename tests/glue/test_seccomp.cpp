#include "glue/seccomp.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "lib/base/child.hpp"

using namespace glidepod;
using namespace glidepod::glue;

namespace {

// Runs the body in a child under the filter; its result is the child's exit code.
int under_filter(const std::function<int()>& body) {
  static const Filter filter = Filter::build().value();
  auto child = Child::fork([&] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || filter.load() != 0) return 250;
    return body();
  });
  REQUIRE(child.ok());
  const auto ended = child->wait();
  REQUIRE(ended.ok());
  return ended->status.how == ExitStatus::How::exited ? ended->status.number : 200 + ended->status.number;
}

// The errno of a call, all of whose arguments are useless, so that it does no harm if the filter lets it
// pass.
int code_of(long number, long a = 0, long b = 0, long c = 0) {
  return under_filter([=] { return ::syscall(number, a, b, c, 0, 0, 0) < 0 ? errno : 0; });
}

}  // namespace

TEST_CASE("seccomp: the program is compiled and fits the kernel") {
  const auto filter = Filter::build();
  REQUIRE(filter.ok());
  CHECK(filter.value().instructions() > 100);
  CHECK(filter.value().instructions() < BPF_MAXINSNS);
}

TEST_CASE("seccomp: what a job has no business with is denied") {
  for (const long number : {SYS_mount,
                            SYS_umount2,
                            SYS_mount_setattr,
                            SYS_move_mount,
                            SYS_open_tree,
                            SYS_fsopen,
                            SYS_fsconfig,
                            SYS_fsmount,
                            SYS_fspick,
                            SYS_pivot_root,
                            SYS_chroot,
                            SYS_unshare,
                            SYS_setns,
                            SYS_bpf,
                            SYS_keyctl,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_kexec_load,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_reboot,
                            SYS_swapon,
                            SYS_swapoff,
                            SYS_open_by_handle_at,
                            SYS_userfaultfd,
                            SYS_acct,
                            SYS_quotactl,
                            SYS_perf_event_open,
                            SYS_syslog,
                            SYS_settimeofday,
                            SYS_clock_settime,
                            SYS_clock_adjtime,
                            SYS_adjtimex,
                            SYS_vhangup,
                            SYS_nfsservctl,
                            SYS_io_uring_setup}) {
    CAPTURE(number);
    CHECK(code_of(number, -1, 0, 0) == EPERM);
  }
#ifdef __x86_64__
  for (const long number : {SYS_iopl, SYS_ioperm}) CHECK(code_of(number) == EPERM);
#endif
}

TEST_CASE("seccomp: no new namespace, by whichever call") {
  for (const long flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                          CLONE_NEWPID, CLONE_NEWNET}) {
    CHECK(code_of(SYS_clone, flag | SIGCHLD) == EPERM);
    CHECK(code_of(SYS_clone, flag | CLONE_NEWUSER | SIGCHLD) == EPERM);
    CHECK(code_of(SYS_unshare, flag) == EPERM);
  }
  CHECK(code_of(SYS_clone3, 0, 0) == ENOSYS);
}

TEST_CASE("seccomp: nobody types into a shared terminal, not even with high bits set") {
  for (const unsigned long request : {TIOCSTI, TIOCLINUX}) {
    CHECK(code_of(SYS_ioctl, -1, static_cast<long>(request)) == EPERM);
    CHECK(code_of(SYS_ioctl, -1, static_cast<long>(request | (1UL << 40))) == EPERM);
  }
  CHECK(code_of(SYS_ioctl, -1, TIOCGWINSZ) == EBADF);
}

TEST_CASE("seccomp: a personality may be asked for and set to harmless ones") {
  const auto personality_code = [](unsigned long value) {
    return code_of(SYS_personality, static_cast<long>(value));
  };
  for (const unsigned long value : {0xffffffffUL, 0UL, 0x8UL, 0x20000UL, 0x20008UL, 0x40000UL, 0x40008UL})
    CHECK(personality_code(value) == 0);
  for (unsigned long bit = 1; bit <= 0x80000000; bit <<= 1)
    if ((bit & 0x60008) == 0) CHECK(personality_code(bit) == EPERM);
  for (const unsigned long value : {0x80400000UL, 0xfffffffeUL, 0x7fffffffUL, 0x440000UL, 0xc0000000UL})
    CHECK(personality_code(value) == EPERM);
}

TEST_CASE("seccomp: threads, processes, debuggers and nested filters work") {
  CHECK(under_filter([] {
          int result = 1;
          std::thread([&] { result = 0; }).join();
          return result;
        }) == 0);
  CHECK(under_filter([] {
          int status = 0;
          const pid_t pid = ::fork();
          if (pid == 0) ::_exit(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 6 : 7);
          ::waitpid(pid, &status, 0);
          return WEXITSTATUS(status) == 6 ? 0 : 1;
        }) == 0);
  CHECK(under_filter([] {
          sock_filter allow{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW};
          sock_fprog program{.len = 1, .filter = &allow};
          return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
        }) == 0);
  CHECK(code_of(SYS_process_vm_readv, -1) != EPERM);
  CHECK(code_of(SYS_mbind, 0, 0, 0) != EPERM);
  CHECK(code_of(SYS_memfd_create, reinterpret_cast<long>("name"), 0) == 0);
  CHECK(code_of(SYS_clock_gettime, CLOCK_REALTIME, 0) == EFAULT);
}

#ifdef __x86_64__
namespace {
// A 32-bit system call, as a 32-bit program makes it.
long call32(long number, long a) {
  long result;
  asm volatile("int $0x80"
               : "=a"(result)
               : "a"(number), "b"(a), "c"(0), "d"(0), "S"(0), "D"(0)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
}
}  // namespace

TEST_CASE("seccomp: the 32-bit interfaces are no way around") {
  // getpid: 20. A kernel may have no such interface, or have it switched off; int 0x80 then ends the process,
  // by its own signal and not by a handler that doctest or a sanitizer has for it.
  const int served = under_filter([] {
    ::signal(SIGSEGV, SIG_DFL);
    return call32(20, 0) == ::getpid() ? 0 : 1;
  });
  CHECK((served == 0 || served == 200 + SIGSEGV));
  if (served == 0) {
    CHECK(under_filter([] { return call32(310, CLONE_NEWUTS) == -EPERM ? 0 : 1; }) == 0);  // unshare
    CHECK(under_filter([] { return call32(21, 0) == -EPERM ? 0 : 1; }) == 0);              // mount
    CHECK(under_filter([] { return call32(120, CLONE_NEWUSER | SIGCHLD) == -EPERM ? 0 : 1; }) == 0);  // clone
    CHECK(under_filter([] { return call32(435, 0) == -ENOSYS ? 0 : 1; }) == 0);  // clone3
  }
  constexpr long x32 = 0x40000000;
  CHECK(code_of(x32 | SYS_getpid) == ENOSYS);
  CHECK(code_of(x32 | SYS_unshare, CLONE_NEWUTS) == ENOSYS);
}
#endif
