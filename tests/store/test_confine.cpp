#include "store/confine.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

using namespace glidepod;
using namespace glidepod::store;

namespace {

constexpr int k_not_confined = 200;

// How a process ends that is confined and then does this; the sanitizers could not live with a limit of
// memory.
int end_of(const std::function<void()>& act, Limits limits = {}) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    limits.memory = RLIM_INFINITY;
    if (!confine(limits)) ::_exit(k_not_confined);
    act();
    ::syscall(SYS_exit_group, 0);  // the sanitizers' _exit() does more
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("attack: who has the reader in hand opens, starts, reaches and signals nothing") {
  struct Attack {
    const char* what;
    std::function<void()> act;
  };
  char program[] = "/bin/true";
  char* const argv[] = {program, nullptr};
  static char page[1];
  const std::vector<Attack> attacks = {
      {"open", [] { ::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); }},
      {"create", [] { ::syscall(SYS_openat, AT_FDCWD, "/tmp/x", O_WRONLY | O_CREAT, 0600); }},
      {"remove", [] { ::syscall(SYS_unlinkat, AT_FDCWD, "/tmp/x", 0); }},
      {"socket", [] { ::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0); }},
      {"fork", [] { ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr); }},
      {"execute", [&] { ::syscall(SYS_execve, program, argv, nullptr); }},
      {"trace", [] { ::syscall(SYS_ptrace, 16, ::syscall(SYS_getpid), 0, 0); }},
      {"signal", [] { ::syscall(SYS_kill, 1, 0); }},
      // The store itself has the same user in a pod.
      {"signal a thread of another process",
       [parent = ::getpid()] { ::syscall(SYS_tgkill, parent, parent, 0); }},
      {"a user namespace", [] { ::syscall(SYS_unshare, CLONE_NEWUSER); }},
      {"io_uring", [] { ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"device control", [] { ::syscall(SYS_ioctl, 0, 0x5412, page); }},  // TIOCSTI
      {"code in new memory",
       [] { ::syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }},
      {"code in its memory", [] { ::syscall(SYS_mprotect, page, 1, PROT_READ | PROT_EXEC); }},
  };
  for (const auto& attack : attacks) CHECK_MESSAGE(end_of(attack.act) == -SIGSYS, attack.what);
}

TEST_CASE("confine: what is left is to read, to write, to ask for memory, to abort and to end") {
  CHECK(end_of([] {
          const auto pid = ::syscall(SYS_getpid);
          if (::syscall(SYS_tgkill, pid, pid, 0) != 0) ::_exit(1);  // as abort() does it
          // As such, since AddressSanitizer's mmap() and munmap() do more than these.
          const long memory =
              ::syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          if (memory == -1 || ::syscall(SYS_munmap, memory, 4096) != 0) ::_exit(2);
          if (::syscall(SYS_write, STDOUT_FILENO, "", 0) != 0) ::_exit(3);
        }) == 0);
}

TEST_CASE("confine: whoever takes too long ends by the signal that says so") {
  const auto burn = [] {
    while (::syscall(SYS_getpid) > 0) {
    }
  };
  CHECK(end_of(burn, {.processor_seconds = 1}) == -SIGXCPU);
}
