#include "glue/seccomp.hpp"

#include <asm/ioctls.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "lib/base/fd.hpp"
#include "lib/base/file.hpp"

namespace glidepod::glue {

namespace {

// EPERM for each. What is *not* here is so on purpose: ptrace and process_vm_* (debuggers within the job),
// mbind and move_pages (the kernel confines them to the caller's own processes; NUMA-aware codes use them),
// name_to_handle_at (harmless without its counterpart).
constexpr std::array k_denied = {
    // File system trees, by both interfaces.
    "mount", "umount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
    "fspick", "pivot_root", "chroot", "open_by_handle_at",
    // Namespaces: a user namespace is the door to most of the kernel's recent holes.
    "unshare", "setns",
    // Large, young interfaces that a job can do without; container runtimes deny them too.
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
    // Keyrings are shared by every process of a uid, in whatever container.
    "add_key", "request_key", "keyctl",
    // The machine.
    "kexec_load", "kexec_file_load", "create_module", "init_module", "finit_module", "delete_module",
    "query_module", "get_kernel_syms", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd",
    "syslog", "sethostname", "setdomainname", "settimeofday", "stime", "clock_settime", "clock_settime64",
    "clock_adjtime", "clock_adjtime64", "adjtimex", "iopl", "ioperm", "vhangup", "nfsservctl",
    // Leftovers of old kernels.
    "lookup_dcookie", "uselib", "_sysctl", "sysfs", "ustat", "vm86", "vm86old", "bdflush"};

// CLONE_NEWTIME is not among them: in clone(2)'s flags its bit belongs to the exit signal.
constexpr std::array<scmp_datum_t, 7> k_namespace_flags = {
    CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};

// TIOCSTI types into a shared terminal, TIOCLINUX pastes into one.
constexpr std::array<scmp_datum_t, 2> k_denied_ioctls = {TIOCSTI, TIOCLINUX};

// personality(2) may ask (all bits), and set what only changes what uname says (PER_LINUX32 0x8, UNAME26
// 0x20000) or the address layout for a debugger (ADDR_NO_RANDOMIZE 0x40000).
constexpr scmp_datum_t k_personality_allowed = 0x60008;

class Builder {
 public:
  Builder() : context_(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release) {}

  Result<Fd> compile() {
    if (!context_) return error("no memory");
#ifdef __x86_64__
    // 32-bit programs are rare in science, not absent: the same rules hold for them. x32 remains unknown.
    check(seccomp_arch_add(context_.get(), SCMP_ARCH_X86));
#endif
    // Any other ABI (x32): as if the kernel had been built without it. The default would kill the process.
    check(seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)));
    check(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    for (const char* name : k_denied) deny(name, EPERM);
    // The flags of clone3 are behind a pointer, where no filter can look; on ENOSYS the C library takes
    // clone.
    deny("clone3", ENOSYS);
    for (const auto flag : k_namespace_flags)
      deny("clone", EPERM, SCMP_A0_64(SCMP_CMP_MASKED_EQ, flag, flag));
    // The kernel looks at the lower half only, so the filter must too.
    for (const auto request : k_denied_ioctls)
      deny("ioctl", EPERM, SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffff, request));
    deny_personalities();
    if (failure_ != 0) return Error("add a rule", failure_);

    Fd file(::memfd_create("filter", MFD_CLOEXEC));
    if (!file) return Error::system("memfd_create");
    const int exported = seccomp_export_bpf(context_.get(), file.get());
    if (exported != 0) return Error("export", -exported);
    ::lseek(file.get(), 0, SEEK_SET);
    return file;
  }

 private:
  void check(int result) {
    if (result != 0 && failure_ == 0) failure_ = -result;
  }
  template <typename... Comparisons>
  void deny(const char* name, int code, Comparisons... comparisons) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return;  // of another architecture
    check(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(code)), number,
                           sizeof...(comparisons), comparisons...));
  }
  // "Has a bit beyond those allowed, and is not 0xffffffff" in terms of single comparisons: denied is a value
  // without the highest bit but with a bad one, or with the highest bit but not with all.
  void deny_personalities() {
    constexpr scmp_datum_t highest = 0x80000000;
    for (scmp_datum_t bit = 1; bit < highest; bit <<= 1) {
      if ((bit & k_personality_allowed) == 0)
        deny("personality", EPERM, SCMP_A0_64(SCMP_CMP_MASKED_EQ, highest | bit, bit));
      deny("personality", EPERM, SCMP_A0_64(SCMP_CMP_MASKED_EQ, highest | bit, highest));
    }
  }

  std::unique_ptr<void, decltype(&seccomp_release)> context_;
  int failure_ = 0;
};

}  // namespace

Result<Filter> Filter::build() {
  const Fd file = TRY(Builder().compile().in("build the seccomp filter"));
  const std::string bytes = TRY(read_all(file, "the seccomp filter", BPF_MAXINSNS * sizeof(sock_filter)));
  Filter filter;
  filter.program_.resize(bytes.size() / sizeof(sock_filter));
  bytes.copy(reinterpret_cast<char*>(filter.program_.data()), bytes.size());
  return filter;
}

int Filter::load() const {
  sock_fprog program{.len = static_cast<unsigned short>(program_.size()),
                     .filter = const_cast<sock_filter*>(program_.data())};
  // SPEC_ALLOW: no slower code for every job on kernels that tie seccomp to speculation barriers, as runc
  // does.
  for (const unsigned long flags : {SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0UL}) {
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0) return 0;
    if (errno != EINVAL) return errno;
  }
  return errno;
}

}  // namespace glidepod::glue
