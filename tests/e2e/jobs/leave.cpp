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

// A segment for each slot's user, of whom it says that they are theirs; attached, so that nobody can have
// them gone.
void give() {
  for (unsigned uid = 20001; uid <= 20064; ++uid) {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
    shmid_ds state{};
    if (id < 0 || shmat(id, nullptr, 0) == reinterpret_cast<void*>(-1) || shmctl(id, IPC_STAT, &state) != 0)
      _exit(3);
    state.shm_perm.uid = uid;
    if (shmctl(id, IPC_SET, &state) != 0) _exit(4);
  }
}

// More folders in /dev/shm than anybody looks through for fun, in one that everybody may write to.
void many() {
  umask(0);
  if (mkdir("/dev/shm/many", 0777) != 0 || chdir("/dev/shm/many") != 0) _exit(5);
  for (int i = 0; i < 300'000; ++i) mkdir(std::to_string(i).c_str(), 0777);
  chdir("/");
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
    if (what == "give") give();
    if (what == "many") many();
    if (what == "stay") linger();
  }
  std::puts("left");
  return 0;
}
