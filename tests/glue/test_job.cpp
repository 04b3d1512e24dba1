// What jobs do in the integration tests: /job WHAT [ARGUMENT]. Static, so that it runs in any root.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

namespace {

void wait_for_ever() {
  while (true) ::pause();
}

void ignore_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_IGN);
}

// A daemon as they all start: double fork, own session, no terminal, deaf.
int leave_daemon() {
  int ready[2];
  if (::pipe(ready) != 0) return 1;
  if (::fork() == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    ignore_signals();
    ::close(ready[0]);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::close(ready[1]);
    wait_for_ever();
  }
  ::close(ready[1]);
  char byte;
  const bool left = ::read(ready[0], &byte, 1) == 1;
  ::wait(nullptr);  // only the daemon is left: who made it is slower than it, now and then
  return left ? 0 : 1;
}

// Forks as fast as it can, and so does every child; some of them change session or ignore what they can.
int bomb() {
  ignore_signals();
  for (int i = 0; i < 100000; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0 && i % 3 == 0) ::setsid();
  }
  return 0;
}

// Each process of a chain only starts the next one.
[[noreturn]] void chain(bool own_session) {
  while (true) {
    const pid_t next = ::fork();
    if (next > 0) ::_exit(0);
    if (next == 0 && own_session) ::setsid();
  }
}

int leave_chains(int count) {
  for (int i = 0; i < count; ++i)
    if (::fork() == 0) chain(i % 2 == 0);
  ignore_signals();
  std::printf("ready\n");
  wait_for_ever();
  return 0;
}

// Leaves a process that is writing a core dump: of so much memory that was never touched that it takes
// minutes.
int leave_dump() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    constexpr std::size_t k_size = std::size_t{16} << 40;
    void* memory =
        ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) ::_exit(1);
    *static_cast<char*>(memory) = 1;
    ::abort();
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  while (true) {
    char text[4096] = {};
    const int fd = ::open(path.c_str(), O_RDONLY);
    const ssize_t got = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (got <= 0 || std::strstr(text, "State:\tZ") != nullptr) return 1;
    if (std::strstr(text, "CoreDumping:\t1") != nullptr) return 0;
  }
}

int make_files(const std::string& folder, int count) {
  if (::mkdir(folder.c_str(), 0700) != 0 || ::chdir(folder.c_str()) != 0) return 1;
  for (int i = 0; i < count; ++i) ::close(::open(std::to_string(i).c_str(), O_WRONLY | O_CREAT, 0600));
  return 0;
}

// Leaves a process whose first thread has ended: it looks like a zombie and is none.
int leave_zombie_leader() {
  int ready[2];
  if (::pipe(ready) != 0) return 1;
  if (::fork() == 0) {
    pthread_t thread;
    ::pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          wait_for_ever();
          return nullptr;
        },
        nullptr);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::syscall(SYS_exit, 0);
  }
  char byte;
  return ::read(ready[0], &byte, 1) == 1 ? 0 : 1;
}

int make_ipc() {
  const bool made = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 &&
                    ::semget(IPC_PRIVATE, 2, IPC_CREAT | 0600) >= 0 &&
                    ::msgget(IPC_PRIVATE, IPC_CREAT | 0600) >= 0;
  const int memory = ::shm_open("/left", O_CREAT | O_RDWR, 0600);
  mq_attr attributes{};
  attributes.mq_maxmsg = 2;
  attributes.mq_msgsize = 16;
  const mqd_t queue = ::mq_open("/left", O_CREAT | O_RDWR, 0600, &attributes);
  return made && memory >= 0 && queue >= 0 ? 0 : 1;
}

// A chain of folders far longer than any path may be.
int nest(const std::string& start, int depth) {
  if (::mkdir(start.c_str(), 0700) != 0 || ::chdir(start.c_str()) != 0) return 1;
  for (int i = 0; i < depth; ++i)
    if (::mkdir("d", 0700) != 0 || ::chdir("d") != 0) return 1;
  return 0;
}

// Makes whoever started this process its tracer, in good faith or not.
int be_traced(std::string_view how) {
  ::signal(SIGUSR1, [](int) { ::_exit(7); });
  if (how == "thread") {  // which ends without a stop, in a process that has used a processor before
    while (std::clock() < CLOCKS_PER_SEC / 2) {
    }
    pthread_t thread;
    ::pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
          return nullptr;
        },
        nullptr);
    return ::pthread_join(thread, nullptr);
  }
  if (how == "orphan") {  // of its parent it is the job's, of glue it is the child
    int end[2];
    if (::pipe(end) != 0) return 1;
    const pid_t parent = ::fork();
    if (parent == 0) {
      if (::fork() != 0) ::_exit(0);
      while (::getppid() == parent) {
      }
      ::exit(be_traced("raise"));
    }
    ::waitpid(parent, nullptr, 0);
    ::close(end[1]);
    char byte;
    return ::read(end[0], &byte, 1) == 0 ? 0 : 1;  // it has ended
  }
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 1;
  if (how == "raise") ::raise(SIGUSR1);
  if (how == "fault") ::raise(SIGSEGV);
  if (how == "exec") ::execl("/job", "/job", "exit", "9", nullptr);
  std::printf("ready\n");
  wait_for_ever();
  return 1;
}

// Each way into another process; 0 if all are closed.
int attack(pid_t victim) {
  int open = 0;
  const auto denied = [&](const char* what, bool is_denied) {
    if (is_denied) return;
    std::printf("%s is possible\n", what);
    ++open;
  };
  const std::string folder = "/proc/" + std::to_string(victim);
  for (const char* name : {"/environ", "/mem", "/maps", "/fd/0", "/auxv"})
    denied(name, ::open((folder + name).c_str(), O_RDONLY) < 0);
  denied("root", ::open((folder + "/root/etc").c_str(), O_RDONLY) < 0);
  denied("exe", ::open((folder + "/exe").c_str(), O_RDONLY) < 0);
  denied("write oom_score_adj", ::open((folder + "/oom_score_adj").c_str(), O_WRONLY) < 0);
  for (const int number : {SIGKILL, SIGTERM, SIGSTOP, SIGCHLD, 0})
    denied("kill", ::kill(victim, number) != 0 && errno == EPERM);
  denied("ptrace attach", ::ptrace(PTRACE_ATTACH, victim, nullptr, nullptr) != 0);
  denied("ptrace seize", ::ptrace(PTRACE_SEIZE, victim, nullptr, nullptr) != 0);
  char byte;
  iovec local{&byte, 1}, remote{reinterpret_cast<void*>(0x400000), 1};
  denied("process_vm_readv", ::process_vm_readv(victim, &local, 1, &remote, 1, 0) < 0);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, victim, 0));
  denied("pidfd_getfd", ::syscall(SYS_pidfd_getfd, pidfd, 0, 0) < 0);
  return open;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string argument = argc > 2 ? argv[2] : "";
  const int number = std::atoi(argument.c_str());
  ::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line in one piece, though two processes write
  if (what == "exit") return number;
  if (what == "raise") return ::raise(number);
  if (what == "daemon") return leave_daemon();
  if (what == "bomb") return bomb();
  if (what == "chains") return leave_chains(number);
  if (what == "dump") return leave_dump();
  if (what == "files") return make_files(argument, std::atoi(argv[3]));
  if (what == "zombie-leader") return leave_zombie_leader();
  if (what == "ipc") return make_ipc();
  if (what == "nest") return nest(argument, std::atoi(argv[3]));
  if (what == "traced") return be_traced(argument);
  if (what == "attack") return attack(number);
  if (what == "count") {  // the bytes of arguments and environment that arrived
    std::size_t bytes = 0;
    for (int i = 2; i < argc; ++i) bytes += std::strlen(argv[i]);
    for (char** entry = environ; *entry != nullptr; ++entry) bytes += std::strlen(*entry);
    std::printf("%zu\n", bytes);
    return 0;
  }
  if (what == "descriptors") {
    for (int fd = 0; fd < 4096; ++fd)
      if (::fcntl(fd, F_GETFD) >= 0) std::printf("%d ", fd);
    return 0;
  }
  if (what == "deaf") {  // prints, then ends by nothing but KILL
    ignore_signals();
    std::printf("ready\n");
    wait_for_ever();
  }
  if (what == "polite") {  // ends with 5 on TERM
    ::signal(SIGTERM, [](int) { ::_exit(5); });
    std::printf("ready\n");
    wait_for_ever();
  }
  std::printf("unknown: %s\n", argv[1]);
  return 99;
}
