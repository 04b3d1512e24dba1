// What the jobs of hostile.cpp attempt. Each says what got through, or nothing.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Text = std::string;

uid_t other = 0;
const char* self = "";
constexpr const char* k_shared[] = {"/dev/shm", "/tmp", "/var/tmp"};
constexpr const char* k_pilots[] = {"/glidepod", "/glidepod/bin", "/glidepod/run", "/glidepod/scratch",
                                    "/run/glidepod"};

Text mine(const Text& name) {
  return name + "-" + std::to_string(getuid());
}
void say(const Text& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}
int touch(const Text& path, mode_t mode = 0600) {
  return open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, mode);
}

// Runs it in a child: true if it returned true.
bool in_child(const std::function<bool()>& deed) {
  const pid_t pid = fork();
  if (pid == 0) _exit(deed() ? 0 : 1);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
// A process of its own that stays, deaf to what asks it to end.
void leave(const std::function<void()>& deed) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGTSTP}) signal(number, SIG_IGN);
  deed();
  while (true) pause();
}
void wait_ms(int milliseconds) {
  poll(nullptr, 0, milliseconds);
}

struct Process {
  int pid;
  uid_t uid;
};
// Those of other users: glue, the pilot, the neighbours.
std::vector<Process> foreign() {
  std::vector<Process> result;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    struct stat info {};
    char text[2048] = {};
    const int fd = pid > 0 ? open((entry.path() / "status").c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || fstat(fd, &info) != 0) continue;
    close(fd);
    const char* line = std::strstr(text, "\nUid:");
    const uid_t uid = line == nullptr ? 0 : static_cast<uid_t>(std::atoi(line + 5));
    if (uid != getuid()) result.push_back({pid, uid});
  }
  return result;
}
using Attack = std::function<bool(int pid)>;
Text against_all(const std::vector<std::pair<const char*, Attack>>& attacks) {
  Text breach;
  const auto processes = foreign();
  if (processes.size() < 2) breach = "nobody to attack ";
  for (const auto& [name, attack] : attacks)
    for (const auto& process : processes)
      if (attack(process.pid)) {
        breach += Text(name) + " of " + std::to_string(process.pid) + " of user " +
                  std::to_string(process.uid) + " ";
        break;
      }
  return breach;
}
Text of(int pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}
bool opens(const Text& path, int flags = O_RDONLY) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}
bool lists(const Text& path) {
  std::error_code failed;
  const fs::directory_iterator at(path, failed);
  return !failed && at != fs::directory_iterator();
}
bool connects(const Text& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

Text sockets() {
  Text breach;
  for (const char* path :
       {"/glidepod/run/agent.sock", "/glidepod/run/pilots.sock", "/run/glidepod/exec.sock",
        "/var/run/glidepod/exec.sock", "/var/run/secrets/kubernetes.io/serviceaccount/api.sock"})
    if (connects(path)) breach += Text(path) + " ";
  return breach +
         against_all(
             {{"exec.sock", [](int pid) { return connects(of(pid, "root/run/glidepod/exec.sock")); }},
              {"agent.sock", [](int pid) { return connects(of(pid, "root/glidepod/run/agent.sock")); }}});
}
Text proc() {
  return against_all({{"root", [](int pid) { return lists(of(pid, "root")); }},
                      {"cwd", [](int pid) { return lists(of(pid, "cwd")); }},
                      {"fd", [](int pid) { return lists(of(pid, "fd")); }},
                      {"environ", [](int pid) { return opens(of(pid, "environ")); }},
                      {"mem", [](int pid) { return opens(of(pid, "mem"), O_RDWR); }},
                      {"exe", [](int pid) {
                         char target[64];
                         return readlink(of(pid, "exe").c_str(), target, sizeof target) > 0;
                       }}});
}
Text signals() {
  return against_all({{"SIGCONT", [](int pid) { return kill(pid, SIGCONT) == 0; }},
                      {"SIGURG", [](int pid) { return kill(pid, SIGURG) == 0; }}});
}
Text trace() {
  return against_all({{"seize", [](int pid) { return ptrace(PTRACE_SEIZE, pid, 0, 0) == 0; }},
                      {"memory",
                       [](int pid) {
                         char byte;
                         const iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
                         return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0;
                       }},
                      {"descriptor", [](int pid) {
                         const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
                         return fd >= 0 && syscall(SYS_pidfd_getfd, fd, 0, 0) >= 0;
                       }}});
}
Text tune() {
  return against_all(
      {{"limit",
        [](int pid) {
          const rlimit limit{1, 1};
          return prlimit(static_cast<pid_t>(pid), RLIMIT_NOFILE, &limit, nullptr) == 0;
        }},
       {"oom_score_adj",
        [](int pid) {
          const int fd = open(of(pid, "oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC);
          return fd >= 0 && write(fd, "1000", 4) > 0;
        }},
       {"priority", [](int pid) { return setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 19) == 0; }},
       {"affinity", [](int pid) {
          cpu_set_t set;
          CPU_ZERO(&set);
          CPU_SET(0, &set);
          return sched_setaffinity(pid, sizeof set, &set) == 0;
        }}});
}
Text become_root() {
  Text breach;
  const gid_t root = 0;
  const auto attempt = [&](const char* name, const std::function<bool()>& deed) {
    if (in_child(deed)) breach += Text(name) + " ";
  };
  attempt("setuid", [] { return setuid(0) == 0; });
  attempt("setgid", [] { return setgid(0) == 0; });
  attempt("setgroups", [&] { return setgroups(1, &root) == 0; });
  attempt("another's", [] { return setresuid(other, other, other) == 0; });
  attempt("ambient", [] { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 7, 0, 0) == 0; });
  for (const char* program :
       {"/bin/as-root", "/bin/capable"}) {  // of one image: setuid root, and with capabilities
    attempt(program, [program] {
      execl(program, program, "am-root", nullptr);
      return false;
    });
  }
  return breach;
}
Text write_pilots() {
  Text breach;
  for (const char* folder : k_pilots) {
    const Text path(folder);
    if (opens(path + "/new", O_CREAT | O_WRONLY)) breach += path + "/new ";
    if (chmod(folder, 0777) == 0) breach += path + " chmod ";
    if (chown(folder, getuid(), getgid()) == 0) breach += path + " chown ";
    if (mkdir((path + "/folder").c_str(), 0777) == 0) breach += path + "/folder ";
    if (symlink("/etc", (path + "/link").c_str()) == 0) breach += path + "/link ";
  }
  for (const char* file : {"/glidepod/bin/glue", "/glidepod/run/agent.sock", "/glidepod/scratch/hostile",
                           "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hosts"}) {
    if (opens(file, O_WRONLY)) breach += Text(file) + " ";
    if (unlink(file) == 0) breach += Text(file) + " removed ";
    if (rename("/proc/self/exe", file) == 0) breach += Text(file) + " replaced ";
  }
  if (lists("/glidepod/run")) breach += "/glidepod/run listed ";
  for (const char* folder : k_shared)
    if (chmod(folder, 0700) == 0 && access(folder, W_OK) == 0) breach += Text(folder) + " closed ";
  return breach;
}
Text neighbours_folder() {
  Text breach;
  char here[4096] = {};
  if (getcwd(here, sizeof here - 1) == nullptr) return breach;
  for (int n = 0; n < 32; ++n)
    for (const char* who : {"job", "neighbour"}) {
      const Text path = "/glidepod/scratch/" + Text(who) + "-" + std::to_string(n);
      if (path != here &&
          (lists(path) || opens(path + "/secret") || opens(path + "/new", O_CREAT | O_WRONLY)))
        breach += path + " ";
    }
  return breach;
}
Text namespaces() {
  Text breach;
  const auto attempt = [&](const char* name, const std::function<bool()>& deed) {
    if (in_child(deed)) breach += Text(name) + " ";
  };
  attempt("user", [] { return unshare(CLONE_NEWUSER) == 0; });
  attempt("mounts", [] { return unshare(CLONE_NEWNS) == 0; });
  attempt("clone", [] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) > 0; });
  attempt("setns", [] { return setns(open("/proc/1/ns/mnt", O_RDONLY), 0) == 0; });
  attempt("mount", [] { return mount("none", "/tmp", "tmpfs", 0, nullptr) == 0; });
  attempt("umount", [] { return umount2("/glidepod/bin", MNT_DETACH) == 0; });
  attempt("open_tree", [] { return syscall(SYS_open_tree, AT_FDCWD, "/", 1) >= 0; });
  attempt("chroot", [] { return chroot(".") == 0; });
  attempt("by handle", [] { return syscall(SYS_open_by_handle_at, AT_FDCWD, nullptr, 0) >= 0; });
  return breach;
}
Text kernel() {
  Text breach;
  const auto attempt = [&](const char* name, const std::function<bool()>& deed) {
    if (in_child(deed)) breach += Text(name) + " ";
  };
  attempt("keyctl", [] { return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1) >= 0; });
  attempt("bpf", [] { return syscall(SYS_bpf, 0, nullptr, 0) >= 0; });
  attempt("perf", [] {
    char a[128] = {1, 0, 0, 0, 112};
    return syscall(SYS_perf_event_open, a, 0, -1, -1, 0) >= 0;
  });
  attempt("module", [] { return syscall(SYS_init_module, "", 0, "") == 0; });
  attempt("mknod", [] { return mknod("/dev/shm/disk", S_IFBLK | 0600, 0xfe00) == 0; });
  attempt("swap", [] { return syscall(SYS_swapon, "/tmp", 0) == 0; });
  attempt("host name", [] { return sethostname("x", 1) == 0; });
  attempt("terminal", [] {
    const int t = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    return t >= 0 && ioctl(t, TIOCSTI, "x") == 0;
  });
  for (const char* path : {"/dev/mem", "/dev/kmsg", "/proc/kcore", "/proc/sysrq-trigger"})
    if (opens(path) || opens(path, O_WRONLY)) breach += Text(path) + " ";
  return breach;
}
// What is above a descriptor that the starter's side has opened, and what it reads.
Text escape() {
  struct stat info {};
  if (fstat(0, &info) != 0) return "";
  Text breach = S_ISDIR(info.st_mode) ? "a folder " : S_ISCHR(info.st_mode) ? "a device " : "a file ";
  if (openat(0, "../../../../etc/condor", O_RDONLY) >= 0) breach += "the pilot's configuration ";
  return breach;
}

}  // namespace
