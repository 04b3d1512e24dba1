// Jobs that attack, one verb each, and what a neighbour's job does meanwhile. tests/e2e/hostile draws them.
//
//   hostile VERB [UID [MS]]   UID: the user of the job beside it; MS: for how long a neighbour goes on
//   hostile --table           a line for each verb: name|who|standard input|output|end
//
// "who" is job or neighbour. A neighbour says "ready", goes on until its standard input ends, or for MS
// milliseconds, and then says how it fared. "output" is all that a verb may say ("\n" is a new line), "end"
// how it ends: "exit N", "signal N", or "refused": then it was never started. Runs in any image, so nothing
// of an image is expected to be there.
#include <chrono>

#include "hostile/left.hpp"

namespace {

struct Verb {
  const char* name;
  const char* who;
  const char* input;
  Text output;
  const char* end;
  std::function<int()> deed;
};

// Says what got through.
std::function<int()> attempts(Text (*attack)()) {
  return [attack] {
    const Text breach = attack();
    say(breach.empty() ? "refused" : "BREACH " + breach);
    return 0;
  };
}
std::function<int()> leaves(const std::function<void()>& deed) {
  return [deed] {
    deed();
    say("done");
    return 0;
  };
}
[[noreturn]] void seven(int) {
  _exit(7);
}
void* later(void*) {
  wait_ms(100);
  _exit(5);
}

std::chrono::steady_clock::time_point until;  // of a neighbour without a held input

// A neighbour's: until the input ends, or its number of milliseconds has passed.
bool more_wanted(int milliseconds = 0) {
  if (until.time_since_epoch().count() != 0) {
    wait_ms(milliseconds < 0 ? 50 : milliseconds);
    return std::chrono::steady_clock::now() < until;
  }
  pollfd input{0, POLLIN, 0};
  char byte;
  return poll(&input, 1, milliseconds) == 0 || (input.revents & POLLIN && read(0, &byte, 1) > 0);
}
std::function<int()> meanwhile(const std::function<void()>& first, const std::function<Text()>& again,
                               int pause_ms) {
  return [=] {
    if (first) first();
    say("ready");
    Text breach;
    do {
      if (again && breach.empty()) breach = again();
    } while (more_wanted(pause_ms));
    say(breach.empty() ? "refused" : "BREACH " + breach);
    return 0;
  };
}

// What an honest neighbour has, it keeps.
struct Belongings {
  std::vector<Text> files;
  int segment = -1, queue = -1;
  char* memory = nullptr;

  void make() {
    for (const char* f : k_shared) {
      const Text path = f + mine("/kept");
      const int fd = touch(path);
      if (fd < 0) continue;
      write(fd, path.data(), path.size());
      close(fd);
      files.push_back(path);
    }
    segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    memory = static_cast<char*>(shmat(segment, nullptr, 0));
    if (memory != reinterpret_cast<char*>(-1)) std::strcpy(memory, "kept");
    queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  }
  Text missing() const {
    Text gone;
    for (const auto& path : files) {
      struct stat info {};
      if (lstat(path.c_str(), &info) != 0 || info.st_uid != getuid() || (info.st_mode & 0777) != 0600 ||
          info.st_size != static_cast<off_t>(path.size()))
        gone += path + " ";
    }
    shmid_ds shared{};
    msqid_ds messages{};
    if (shmctl(segment, IPC_STAT, &shared) != 0 || shared.shm_perm.uid != getuid() ||
        std::strcmp(memory, "kept") != 0)
      gone += "segment ";
    if (msgctl(queue, IPC_STAT, &messages) != 0) gone += "queue ";
    return gone;
  }
};
int honest_neighbour() {
  Belongings belongings;
  belongings.make();
  say("ready");
  while (more_wanted(-1)) {
  }
  const Text gone = belongings.missing();
  say(gone.empty() ? "kept" : "BREACH lost " + gone);
  return 0;
}
int honest_job() {
  Belongings belongings;
  belongings.make();
  struct stat info {};
  const int fd = touch("result", 0644);
  const bool writes = fd >= 0 && write(fd, "x", 1) == 1 && fstat(fd, &info) == 0 && info.st_uid == getuid();
  wait_ms(20);
  const Text gone = belongings.missing();
  say(gone.empty() && writes && getuid() != 0 && getuid() != other ? "done" : "BREACH lost " + gone);
  return 0;
}

const Text k_done = "up\ndone\n", k_refused = "up\nrefused\n", k_up = "up\n", k_ready = "ready\nrefused\n";

std::vector<Verb> table() {
  return {
      {"honest", "job", "null", k_done, "exit 0", honest_job},
      {"code", "job", "null", k_up, "exit 42", [] { return 42; }},
      {"segv", "job", "null", k_up, "signal 11", [] { return raise(SIGSEGV); }},
      {"abort", "job", "null", k_up, "signal 6", [] { return raise(SIGABRT); }},
      {"kill-self", "job", "null", k_up, "signal 9", [] { return raise(SIGKILL); }},
      {"traced", "job", "null", k_up, "exit 7",
       [] {
         signal(SIGUSR1, seven), ptrace(PTRACE_TRACEME, 0, 0, 0), raise(SIGUSR1), pause();
         return 1;
       }},
      {"traced-exec", "job", "null", k_up, "exit 42",
       [] {
         ptrace(PTRACE_TRACEME, 0, 0, 0), execl("/proc/self/exe", self, "then-42", nullptr);
         return 1;
       }},
      {"traced-stop", "job", "null", k_up, "exit 3",
       [] {
         leave([pid = getppid(), me = getpid()] {
           (void)pid;
           for (int i = 0; i < 40; ++i) wait_ms(50), kill(me, SIGCONT);
         });
         ptrace(PTRACE_TRACEME, 0, 0, 0), raise(SIGSTOP);
         return 3;
       }},
      {"stopped", "job", "null", k_up, "exit 3",
       [] {
         leave([me = getpid()] {
           for (int i = 0; i < 40; ++i) wait_ms(50), kill(me, SIGCONT);
         });
         raise(SIGSTOP);
         return 3;
       }},
      {"thread", "job", "null", k_up, "exit 5",
       [] {
         pthread_t thread;
         pthread_create(&thread, nullptr, later, nullptr);
         pthread_exit(nullptr);
         return 0;
       }},
      {"daemon", "job", "null", k_done, "exit 0", leaves([] { leave([] {}); })},
      {"chain", "job", "null", k_done, "exit 0", leaves([] {
         chain();
         wait_ms(50);
       })},
      {"many", "job", "null", k_done, "exit 0", leaves([] {
         for (int i = 0; i < 100; ++i)
           if (fork() == 0)
             while (true) pause();
       })},
      {"stopped-child", "job", "null", k_done, "exit 0", leaves([] {
         for (int i = 0; i < 5; ++i) leave([] { raise(SIGSTOP); });
       })},
      {"kill-all", "job", "null", k_up, "signal 9",
       [] {
         kill(-1, SIGKILL);
         wait_ms(20000);
         return 0;
       }},
      {"deep", "job", "null", k_done, "exit 0", leaves(deep)},
      {"closed", "job", "null", k_done, "exit 0", leaves(closed)},
      {"wide", "job", "null", k_done, "exit 0", leaves(wide)},
      {"odd-files", "job", "null", k_done, "exit 0", leaves(odd_files)},
      {"folders", "job", "null", k_done, "exit 0", leaves([] { folders(3000); })},
      {"give-ipc", "job", "null", k_done, "exit 0", leaves(give_ipc)},
      {"queues", "job", "null", k_done, "exit 0", leaves(queues)},
      {"bend", "job", "null", k_done, "exit 0", leaves([] {
         leave([] { bend([] { return true; }); });
         wait_ms(30);
       })},
      {"exhaust", "job", "null", k_done, "exit 0", leaves(exhaust)},
      {"locks", "job", "null", k_done, "exit 0", leaves(locks)},
      {"sockets", "job", "null", k_refused, "exit 0", attempts(sockets)},
      {"proc", "job", "null", k_refused, "exit 0", attempts(proc)},
      {"signals", "job", "null", k_refused, "exit 0", attempts(signals)},
      {"trace", "job", "null", k_refused, "exit 0", attempts(trace)},
      {"tune", "job", "null", k_refused, "exit 0", attempts(tune)},
      {"become-root", "job", "null", k_refused, "exit 0", attempts(become_root)},
      {"write-pilots", "job", "null", k_refused, "exit 0", attempts(write_pilots)},
      {"neighbours-folder", "job", "null", k_refused, "exit 0", attempts(neighbours_folder)},
      {"namespaces", "job", "null", k_refused, "exit 0", attempts(namespaces)},
      {"kernel", "job", "null", k_refused, "exit 0", attempts(kernel)},
      {"in-folder", "job", "folder", "", "refused", attempts(escape)},
      {"in-path", "job", "path", "", "refused", attempts(escape)},
      {"in-device", "job", "device", "", "refused", attempts(escape)},
      {"in-config", "job", "config", "", "refused", attempts(escape)},
      {"in-file", "job", "file", "up\ncontent\n", "exit 0",
       [] {
         char c[9] = {};
         read(0, c, 7);
         say(c);
         return 0;
       }},
      {"in-fifo", "job", "pipe", k_done, "exit 0", leaves([] {})},
      {"close-all", "job", "null", k_up, "exit 4",
       [] {
         close(0), close(1), close(2);
         return 4;
       }},
      {"flood", "job", "null", k_up + Text(300000, 'x') + "\n", "exit 0",
       [] {
         say(Text(300000, 'x'));
         return 0;
       }},
      {"own-folder", "job", "null", k_done, "exit 0",
       leaves([] { mkdir("sub", 0), symlink("/glidepod/run", "link"), chmod(".", 0); })},
      {"inner-pilots", "job", "null", k_refused, "exit 0", attempts(inner_pilots)},
      {"n-honest", "neighbour", "held", "ready\nkept\n", "exit 0", honest_neighbour},
      {"n-bend", "neighbour", "held", k_ready, "exit 0",
       meanwhile(
           nullptr,
           [] {
             bend([] {
               static int n = 0;
               return ++n % 200 != 0;
             });
             return Text();
           },
           1)},
      {"n-folders", "neighbour", "held", k_ready, "exit 0", meanwhile([] { folders(20000); }, nullptr, -1)},
      {"n-give-ipc", "neighbour", "held", k_ready, "exit 0", meanwhile(give_ipc, nullptr, -1)},
      {"n-links", "neighbour", "held", k_ready, "exit 0",
       meanwhile(
           nullptr,
           [] {
             links_to_all();
             return Text();
           },
           20)},
      {"n-sockets", "neighbour", "held", k_ready, "exit 0", meanwhile(nullptr, sockets, 50)},
      {"n-proc", "neighbour", "held", k_ready, "exit 0", meanwhile(nullptr, proc, 20)},
      {"n-signals", "neighbour", "held", k_ready, "exit 0", meanwhile(nullptr, signals, 20)},
      {"n-write", "neighbour", "held", k_ready, "exit 0", meanwhile(nullptr, write_pilots, 20)},
      {"n-chain", "neighbour", "held", k_ready, "exit 0", meanwhile(chain, nullptr, -1)},
      {"n-leaves", "neighbour", "held", k_ready, "exit 0",
       meanwhile(
           [] {
             wide(), closed(), odd_files(), queues();
             leave([] {});
           },
           nullptr, -1)},
  };
}

Text escaped(const Text& text) {
  Text result;
  for (const char c : text) c == '\n' ? result += "\\n" : result += c;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string_view wanted = argv[1];
  if (argc > 2) other = static_cast<uid_t>(std::atoi(argv[2]));
  if (argc > 3) until = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(argv[3]));
  static char path[4096];
  if (readlink("/proc/self/exe", path, sizeof path - 1) > 0) self = path;
  if (wanted == "then-42") return 42;
  if (wanted == "am-root") {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    syscall(SYS_capget, &header, sets);
    return geteuid() == 0 || getegid() == 0 || sets[0].effective != 0 ? 0 : 1;
  }
  if (wanted == "inner") {
    std::printf("%u\n", getuid());
    std::fflush(stdout);
    wait_ms(700);  // both are there at once
    return 0;
  }
  for (const auto& verb : table()) {
    if (wanted == "--table")
      std::printf("%s|%s|%s|%s|%s\n", verb.name, verb.who, verb.input, escaped(verb.output).c_str(),
                  verb.end);
    if (wanted != verb.name) continue;
    if (verb.who == std::string_view("job")) say("up");
    return verb.deed();
  }
  return wanted == "--table" ? 0 : 2;
}
