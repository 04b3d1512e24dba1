#include "store/confine.hpp"

#include <grp.h>
#include <linux/close_range.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace glidepod::store {
namespace {

constexpr uid_t k_nobody = 65534;
constexpr unsigned k_first_other = 3;        // descriptor
constexpr std::uint64_t k_more_seconds = 5;  // from the soft limit of the processor to the hard one

constexpr std::array k_allowed = {
    "read", "pread64", "write", "writev", "lseek", "close", "fstat", "newfstatat",
    // Memory; mapping and protecting it have a rule of their own below, and so has tgkill.
    "brk", "munmap", "mremap", "madvise",
    // What the C library does by itself.
    "futex", "rt_sigreturn", "rt_sigprocmask", "clock_gettime", "gettimeofday", "getrandom", "sched_yield",
    "restart_syscall", "getpid", "gettid", "exit", "exit_group"};

Result<void> limit(int resource, std::uint64_t soft, std::uint64_t more = 0) {
  const rlimit both{soft, soft + more};
  if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &both) != 0)
    return Error::system("limit resource {}", resource);
  return {};
}

Result<void> become_nobody() {
  if (::geteuid() != 0) return {};
  if (::setgroups(0, nullptr) != 0 || ::setresgid(k_nobody, k_nobody, k_nobody) != 0 ||
      ::setresuid(k_nobody, k_nobody, k_nobody) != 0)
    return Error::system("become user {}", k_nobody);
  return {};
}

Result<void> allow_little() {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(SCMP_ACT_KILL_PROCESS),
                                                                 &seccomp_release);
  if (!filter) return error("no memory for a filter");
  int failure = 0;
  const auto check = [&failure](int code) { failure = failure == 0 ? -code : failure; };
  for (const char* name : k_allowed)
    if (const int number = seccomp_syscall_resolve_name(name); number != __NR_SCMP_ERROR)
      check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0));
  // Memory, but none that becomes code.
  for (const char* name : {"mmap", "mprotect"})
    check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name), 1,
                           SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)));
  // abort() needs a signal, but others may have the same user.
  check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, seccomp_syscall_resolve_name("tgkill"), 1,
                         SCMP_A0_64(SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()))));
  check(seccomp_load(filter.get()));
  if (failure != 0) return Error("load a filter of system calls", failure);
  return {};
}

}  // namespace

Result<void> confine(const Limits& limits) {
  if (::syscall(SYS_close_range, k_first_other, ~0U, 0) != 0) return Error::system("close other files");
  TRY(become_nobody());
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Error::system("give up privileges");
  TRY(limit(RLIMIT_CORE, 0));
  TRY(limit(RLIMIT_NPROC, 0));
  // At the soft limit it is told why it ends; at the hard one, which is looked at first, it is just killed.
  TRY(limit(RLIMIT_CPU, limits.processor_seconds, k_more_seconds));
  TRY(limit(RLIMIT_AS, limits.memory));
  return allow_little();
}

}  // namespace glidepod::store
