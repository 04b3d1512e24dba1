// A job that leaves things behind, one kind an argument, then exits 0. Each process left has MARK, the last
// argument, in its command line, so that the test can look for it.
#include <fcntl.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

std::string self;
const char* mark;

[[noreturn]] void linger() {
  execl("/proc/self/exe", self.c_str(), "linger", mark, static_cast<char*>(nullptr));
  _exit(127);
}

void daemon_twice() {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  chdir("/");
  linger();
}

void holder() {  // keeps the job's stdout open
  if (fork() == 0) linger();
}

void stubborn() {
  if (fork() != 0) return;
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGTSTP}) signal(number, SIG_IGN);
  linger();
}

void bomb() {
  if (fork() != 0) return;
  setsid();
  while (true) {
    if (fork() < 0) usleep(100);
  }
}

void files() {
  for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm"}) {
    const std::string base = std::string(folder) + "/left-" + mark;
    mkdir(base.c_str(), 0700);
    mkdir((base + "/inner").c_str(), 0700);
    close(open((base + "/inner/file").c_str(), O_CREAT | O_WRONLY, 0600));
    symlink("/etc", (base + "/inner/link").c_str());
    chmod((base + "/inner").c_str(), 0);
  }
  shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

}  // namespace

int main(int argc, char** argv) {
  self = argv[0];
  if (argc < 3) return 2;
  mark = argv[argc - 1];
  if (std::strcmp(argv[1], "linger") == 0)
    while (true) pause();
  for (int i = 1; i < argc - 1; ++i) {
    const std::string what = argv[i];
    if (what == "daemon") daemon_twice();
    if (what == "holder") holder();
    if (what == "stubborn") stubborn();
    if (what == "bomb") bomb();
    if (what == "files") files();
    if (what == "stay") linger();
  }
  std::puts("left");
  return 0;
}
