// A hostile job. Tries to reach the pilot, its neighbours, glue and root, and prints one line an attempt:
// "ok: NAME" if it was refused, "not ok: NAME (what it got)" if it succeeded. Runs in any image.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
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
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

void report(const std::string& name, const std::string& breach) {
  if (breach.empty())
    std::printf("ok: %s\n", name.c_str());
  else
    std::printf("not ok: %s (%s)\n", name.c_str(), breach.c_str());
  std::fflush(stdout);
}

std::string slurp(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char buffer[4096];
  for (ssize_t got; fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, got);
  if (fd >= 0) close(fd);
  return text;
}

std::string field(const std::string& text, const std::string& key) {
  const auto at = text.find(key + ":");
  if (at == std::string::npos) return "";
  const auto start = text.find_first_not_of(" \t", at + key.size() + 1);
  return text.substr(start, text.find('\n', start) - start);
}

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  while (directory != nullptr) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (directory != nullptr) closedir(directory);
  return names;
}

struct Process {
  int pid, parent, uid;
  std::string name;
};

std::vector<Process> processes() {
  std::vector<Process> result;
  for (const auto& entry : entries("/proc")) {
    const int pid = std::atoi(entry.c_str());
    const std::string status = pid > 0 ? slurp("/proc/" + entry + "/status") : "";
    if (!status.empty())
      result.push_back({pid, std::atoi(field(status, "PPid").c_str()),
                        std::atoi(field(status, "Uid").c_str()), field(status, "Name")});
  }
  return result;
}

// Everything that is not this process or started by it.
std::vector<Process> foreign() {
  const auto all = processes();
  std::map<int, int> parent;
  for (const auto& process : all) parent[process.pid] = process.parent;
  std::vector<Process> result;
  for (const auto& process : all) {
    int pid = process.pid;
    while (pid > 0 && pid != getpid()) pid = parent.count(pid) ? parent[pid] : 0;
    if (pid != getpid()) result.push_back(process);
  }
  return result;
}

std::string named(const Process& process) {
  return process.name + " pid " + std::to_string(process.pid) + " uid " + std::to_string(process.uid);
}

std::string against_foreign(const std::function<bool(const Process&)>& attack) {
  for (const auto& process : foreign())
    if (attack(process)) return named(process);
  return "";
}

// The program's first line of output, run as a child.
std::string output_of(const std::vector<std::string>& argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    std::vector<char*> pointers;
    for (const auto& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, got);
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  return text.substr(0, text.find('\n'));
}

// Runs the call in a child, since some attempts change the process. True if it succeeded.
bool succeeds(const std::function<long()>& call) {
  const pid_t pid = fork();
  if (pid == 0) _exit(call() >= 0 ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool connects(const sockaddr_un& address, socklen_t length) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  close(fd);
  return connected;
}

bool connects_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return connects(address, sizeof address);
}

void identity() {
  const std::string status = slurp("/proc/self/status");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    report(std::string("capabilities ") + set,
           field(status, set) == "0000000000000000" ? "" : field(status, set));
  report("no_new_privs", field(status, "NoNewPrivs") == "1" ? "" : field(status, "NoNewPrivs"));
  report("seccomp filter", field(status, "Seccomp") == "2" ? "" : field(status, "Seccomp"));
  report("not root", getuid() != 0 && geteuid() != 0 && getgid() != 0 ? "" : "uid or gid 0");
  report("setuid(0)", succeeds([] { return setuid(0); }) ? "became root" : "");
  report("setresuid to the neighbour", succeeds([] {
           const uid_t other = getuid() == 20001 ? 20002 : 20001;
           return setresuid(other, other, other);
         })
                                           ? "became the neighbour"
                                           : "");
  report("setgid(0)", succeeds([] { return setgid(0); }) ? "got group 0" : "");
  report("setgroups", succeeds([] {
           const gid_t root = 0;
           return setgroups(1, &root);
         })
                          ? "set groups"
                          : "");
  for (const auto& entry : entries("/proc/self/fd")) {
    const int fd = std::atoi(entry.c_str());
    char target[256] = {};
    if (fd > 2 && readlink(("/proc/self/fd/" + entry).c_str(), target, sizeof target - 1) > 0 &&
        std::string(target).find("/proc/") != 0)
      report("no descriptor besides stdio", entry + " -> " + target);
  }
}

// The image demo/tools has a program for this: owned by root, setuid, prints its effective uid.
void setuid_program() {
  const char* path = "/usr/bin/setuid-whoami";
  struct stat info {};
  if (stat(path, &info) != 0) return;
  const std::string uid = output_of({path});
  const bool real = info.st_uid == 0 && (info.st_mode & S_ISUID) != 0;
  report("setuid program", real && uid == std::to_string(getuid()) ? "" : "it ran as '" + uid + "'");
}

void other_processes() {
  report("signal to glue, pilot and neighbour", against_foreign([](const Process& p) {
           return p.uid != static_cast<int>(getuid()) && kill(p.pid, 0) == 0;
         }));
  report("ptrace attach", against_foreign([](const Process& p) {
           if (ptrace(PTRACE_SEIZE, p.pid, 0, 0) != 0) return false;
           ptrace(PTRACE_DETACH, p.pid, 0, 0);
           return true;
         }));
  report("process_vm_readv", against_foreign([](const Process& p) {
           char byte;
           const iovec local{&byte, 1}, remote{reinterpret_cast<void*>(0x400000), 1};
           return process_vm_readv(p.pid, &local, 1, &remote, 1, 0) >= 0 ||
                  (errno != EPERM && errno != ESRCH);
         }));
  for (const char* file : {"environ", "mem", "maps", "auxv", "stack", "syscall", "io"})
    report(std::string("open /proc/PID/") + file, against_foreign([file](const Process& p) {
             const std::string path = "/proc/" + std::to_string(p.pid) + "/" + file;
             const int fd = open(path.c_str(), O_RDONLY);
             char byte;
             const bool reads =
                 fd >= 0 && pread(fd, &byte, 1, 0x400000 * (std::strcmp(file, "mem") == 0)) > 0;
             if (fd >= 0) close(fd);
             return reads;
           }));
  for (const char* link : {"root", "cwd", "exe", "ns/mnt", "ns/pid"})
    report(std::string("read link /proc/PID/") + link, against_foreign([link](const Process& p) {
             char target[64];
             return readlink(("/proc/" + std::to_string(p.pid) + "/" + link).c_str(), target,
                             sizeof target) >= 0;
           }));
  for (const char* folder : {"fd", "root", "cwd", "map_files"})
    report(std::string("list /proc/PID/") + folder, against_foreign([folder](const Process& p) {
             return !entries("/proc/" + std::to_string(p.pid) + "/" + folder).empty();
           }));
  report("write /proc/PID/oom_score_adj", against_foreign([](const Process& p) {
           const int fd = open(("/proc/" + std::to_string(p.pid) + "/oom_score_adj").c_str(), O_WRONLY);
           const bool wrote = fd >= 0 && p.uid != static_cast<int>(getuid()) && write(fd, "1000", 4) > 0;
           if (fd >= 0) close(fd);
           return wrote;
         }));
  report("pidfd_getfd", against_foreign([](const Process& p) {
           const int fd = static_cast<int>(syscall(SYS_pidfd_open, p.pid, 0));
           if (fd < 0) return false;
           const long stolen = syscall(SYS_pidfd_getfd, fd, 0, 0);
           close(fd);
           return stolen >= 0;
         }));
  report("setpriority and sched_setaffinity", against_foreign([](const Process& p) {
           cpu_set_t set;
           CPU_ZERO(&set);
           CPU_SET(0, &set);
           return p.uid != static_cast<int>(getuid()) && sched_setaffinity(p.pid, sizeof set, &set) == 0;
         }));
}

void sockets() {
  for (const char* path :
       {"/glidepod/run/agent.sock", "/run/glidepod/exec.sock", "/var/run/glidepod/exec.sock",
        "/var/run/secrets/kubernetes.io/serviceaccount/api.sock"})
    report(std::string("connect to ") + path, connects_to(path) ? "connected" : "");
  report("connect to the agent through /proc/PID/root", against_foreign([](const Process& p) {
           return connects_to("/proc/" + std::to_string(p.pid) + "/root/run/glidepod/exec.sock");
         }));
  std::string breach;
  const std::string table = slurp("/proc/net/unix");
  for (std::size_t at = 0; (at = table.find(" @", at)) != std::string::npos; at += 2) {
    const std::string name = table.substr(at + 2, table.find('\n', at) - at - 2);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
    if (connects(address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())))
      breach += "@" + name + " ";
  }
  report("abstract sockets of the pod", breach);
}

void send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

// HTCondor's starter listens in the sandbox: three descriptors, and it starts a shell with them, as far as it
// knows in the job's container. It would be one in the pilot's.
void starter() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, ".docker_sock");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int in[2], out[2];
  std::string shown;
  if (pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const char* commands = "echo breach; id; exit\n";
    write(in[1], commands, std::strlen(commands));
    for (const int end : {in[0], out[1], out[1]}) send_descriptor(fd, end);
    close(in[1]);
    close(out[1]);
    pollfd answer{out[0], POLLIN, 0};
    char piece[512];
    ssize_t got = 0;
    while (poll(&answer, 1, 5000) > 0 && (got = read(out[0], piece, sizeof piece)) > 0)
      shown.append(piece, got);
  }
  close(fd);
  report("a shell in the pilot container, by the starter's socket",
         shown.find("breach") == std::string::npos ? "" : shown);
}

// The owner's ssh session, if the test has one come: its sshd runs under this job's user id in the pilot
// container.
void wait_for(const char* name) {
  const auto there = [&] {
    for (const auto& process : processes())
      if (process.name == name && process.uid == static_cast<int>(getuid())) return true;
    return false;
  };
  for (int i = 0; i < 600 && !there(); ++i) usleep(100000);
  report(std::string("(") + name + " is there to be attacked)", there() ? "" : "it never came");
}

void files() {
  report("write glue", open("/glidepod/bin/glue", O_WRONLY) >= 0 ? "opened" : "");
  report("replace glue", rename("/proc/self/exe", "/glidepod/bin/glue") == 0 ||
                                 unlink("/glidepod/bin/glue") == 0 ||
                                 open("/glidepod/bin/other", O_CREAT | O_WRONLY, 0755) >= 0
                             ? "replaced"
                             : "");
  report("list /glidepod/run", entries("/glidepod/run").empty() ? "" : "listed");
  report("create in /glidepod/scratch",
         open("/glidepod/scratch/mine", O_CREAT | O_WRONLY, 0600) >= 0 ? "created" : "");
  std::string breach;
  int tried = 0;
  char here[4096] = {};
  getcwd(here, sizeof here - 1);
  for (const auto& entry : entries("/glidepod/scratch")) {
    const std::string path = "/glidepod/scratch/" + entry;
    if (entry[0] == '.' || std::string(here).find(path) == 0) continue;
    ++tried;
    if (!entries(path).empty()) breach = path + " listed";
  }
  if (std::getenv("EXPECT_NEIGHBOUR") != nullptr && tried == 0) breach = "no neighbour's sandbox to try";
  report("another job's sandbox", breach);
  for (const char* path : {"/var/run/secrets/kubernetes.io/serviceaccount/token", "/etc/condor/tokens.d",
                           "/etc/condor/passwords.d", "/dev/mem", "/dev/kmsg", "/proc/kcore",
                           "/proc/sysrq-trigger", "/etc/shadow"})
    report(std::string("open ") + path, open(path, O_RDONLY) >= 0 ? "opened" : "");
  report("write /etc/passwd", open("/etc/passwd", O_WRONLY) >= 0 ? "opened" : "");
  report("mknod", mknod("disk", S_IFBLK | 0600, 0xfe00) == 0 ? "made a device" : "");
}

void system_calls() {
  report("new user namespace", succeeds([] { return unshare(CLONE_NEWUSER); }) ? "made" : "");
  report("new mount namespace", succeeds([] { return unshare(CLONE_NEWNS); }) ? "made" : "");
  report("clone with a new namespace", succeeds([] {
           return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
         })
                                           ? "made"
                                           : "");
  report("clone3", succeeds([] {
           struct {
             unsigned long long flags, rest[10];
           } arguments{CLONE_NEWUSER, {}};
           return syscall(SYS_clone3, &arguments, sizeof arguments);
         })
                       ? "made"
                       : "");
  report("setns", succeeds([] { return setns(open("/proc/self/ns/net", O_RDONLY), 0); }) ? "entered" : "");
  report("mount", succeeds([] { return mount("none", "/tmp", "tmpfs", 0, nullptr); }) ? "mounted" : "");
  report("fsopen", succeeds([] { return syscall(SYS_fsopen, "tmpfs", 0); }) ? "opened" : "");
  report("umount", succeeds([] { return umount2("/glidepod/bin", MNT_DETACH); }) ? "unmounted" : "");
  report("pivot_root", succeeds([] { return syscall(SYS_pivot_root, ".", "."); }) ? "pivoted" : "");
  report("chroot", succeeds([] { return chroot("."); }) ? "changed" : "");
  report("bpf", succeeds([] {
           bpf_attr attributes{};
           attributes.map_type = BPF_MAP_TYPE_ARRAY;
           attributes.key_size = attributes.value_size = 4;
           attributes.max_entries = 1;
           return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
         })
                    ? "made a map"
                    : "");
  report("keyctl",
         succeeds([] { return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1); }) ? "got a keyring" : "");
  report("init_module", succeeds([] { return syscall(SYS_init_module, "", 0, ""); }) ? "loaded" : "");
  report("perf_event_open", succeeds([] {
           char attributes[128] = {1, 0, 0, 0, 112};
           return syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0);
         })
                                ? "opened"
                                : "");
  const int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  report("TIOCSTI", terminal >= 0 && ioctl(terminal, TIOCSTI, "x") == 0 ? "pushed" : "");
  // What ordinary programs need must still work.
  report("ptrace within the job", succeeds([] { return ptrace(PTRACE_TRACEME, 0, 0, 0); }) ? "" : "refused");
  report("fork, threads' clone and exec", succeeds([] {
           const pid_t pid = fork();
           if (pid == 0) _exit(0);
           int status;
           return pid > 0 && waitpid(pid, &status, 0) == pid ? 0L : -1L;
         })
                                              ? ""
                                              : "refused");
}

}  // namespace

int main() {
  if (const char* name = std::getenv("WAIT_FOR")) wait_for(name);
  identity();
  setuid_program();
  other_processes();
  sockets();
  starter();
  files();
  system_calls();
  return 0;
}
