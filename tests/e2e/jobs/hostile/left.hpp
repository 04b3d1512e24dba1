// What the jobs of hostile.cpp leave behind, and what they use up.
#pragma once

#include "attempts.hpp"

namespace {

void tree(const Text& base, int depth, mode_t mode) {
  if (mkdir(base.c_str(), 0700) != 0) return;
  const int start = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (chdir(base.c_str()) == 0) {
    for (int i = 0; i < depth && mkdir("deeper", 0700) == 0 && chdir("deeper") == 0; ++i) {
    }
    touch("file", 0);
    symlink("/glidepod/run", "to-run");
    symlink("/etc/passwd", "to-passwd");
    symlink("/proc/1/root", "to-root");
    chmod(".", mode);
  }
  fchdir(start);
  close(start);
  chmod(base.c_str(), mode);
}
void deep() {
  for (const char* f : k_shared) tree(f + mine("/deep"), 300, 0700);
}
void closed() {
  for (const char* f : k_shared) tree(f + mine("/closed"), 3, 0);
}
void wide() {
  for (const char* f : k_shared)
    for (int i = 0; i < 1000; ++i) close(touch(f + mine("/wide") + "-" + std::to_string(i)));
}
void odd_files() {
  for (const char* f : k_shared) {
    const Text base = f + mine("/odd");
    mkfifo((base + "-fifo").c_str(), 0666);
    close(touch(base + "-\n \x01", 0));
    link((base + "-\n \x01").c_str(), (base + "-again").c_str());
    const int sparse = touch(base + "-sparse", 06777);
    if (sparse >= 0) ftruncate(sparse, off_t{1} << 40), close(sparse);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (base + "-socket").c_str(), sizeof address.sun_path - 1);
    bind(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), reinterpret_cast<sockaddr*>(&address),
         sizeof address);
  }
}
// A folder that everybody may write to, as `/dev/shm` itself is, with more in it than anybody wants to look
// through.
void folders(int count) {
  const Text base = mine("/dev/shm/folders");
  mkdir(base.c_str(), 0777);
  chmod(base.c_str(), 01777);
  for (int i = 0; i < count; ++i) {
    const Text path = base + "/" + std::to_string(i);
    if (mkdir(path.c_str(), 0777) != 0) return;
    if (i % 8 == 0) chmod(path.c_str(), 01777);
  }
}
void give_ipc() {
  for (int i = 0; i < 32; ++i) {
    const uid_t to = i == 0 && other != 0 ? other : 20001U + static_cast<uid_t>(i);
    if (const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666); id >= 0) {
      shmid_ds info{};
      shmctl(id, IPC_STAT, &info);
      info.shm_perm.uid = info.shm_perm.gid = to;
      shmctl(id, IPC_SET, &info);
    }
    if (const int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0666); id >= 0) {
      semid_ds info{};
      semctl(id, 0, IPC_STAT, &info);
      info.sem_perm.uid = to;
      semctl(id, 0, IPC_SET, &info);
    }
    if (const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0666); id >= 0) {
      msqid_ds info{};
      msgctl(id, IPC_STAT, &info);
      info.msg_perm.uid = to;
      msgctl(id, IPC_SET, &info);
    }
  }
}
void queues() {
  for (int i = 0; i < 4; ++i) {
    mq_attr size{0, 2, 64, 0, {}};
    const mqd_t queue =
        mq_open((mine("/queue") + "-" + std::to_string(i)).c_str(), O_CREAT | O_RDWR, 0666, &size);
    if (queue >= 0) mq_send(queue, "x", 1, 0), mq_close(queue);
  }
}
// The name that images may have `/var` lead to: into the pilot's folders and back, as fast as it can be
// exchanged.
void bend(const std::function<bool()>& more) {
  const Text link = "/dev/shm/bend", next = mine("/dev/shm/bend");
  const char* targets[] = {"/glidepod/run", "/glidepod", "/glidepod/scratch", "/dev/shm", "/etc"};
  for (unsigned i = 0; more(); ++i) {
    symlink(targets[i % 5], next.c_str());
    if (rename(next.c_str(), link.c_str()) != 0) unlink(next.c_str());
    symlink(targets[i % 3], "/dev/shm/passwd");
  }
}
void chain() {
  leave([] {
    for (int i = 0; i < 100000; ++i) {
      if (fork() != 0) _exit(0);
      usleep(500);
    }
  });
}
void links_to_all() {
  const Text base = mine("/dev/shm/links");
  mkdir(base.c_str(), 01777);
  std::error_code ignored;
  int n = 0;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored))
    link(entry.path().c_str(), (base + "/" + std::to_string(n++)).c_str());
}
void exhaust() {
  for (int i = 0; i < 120; ++i)
    inotify_init1(IN_CLOEXEC);  // the rest of the user's 128 is for others of this pod
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  for (int i = 0; i < 1000; ++i) sigqueue(getpid(), SIGRTMIN, {});
}
void locks() {
  leave([] {
    for (const char* path : {"/glidepod/bin/glue", "/etc/passwd", "/glidepod", "/dev/shm", "/"})
      flock(open(path, O_RDONLY | O_CLOEXEC), LOCK_EX | LOCK_NB);
  });
}
// Inside a pilot job: two jobs at once, which must not be each other's user.
Text inner_pilots() {
  Text said[2];
  int ends[2][2];
  pid_t pids[2];
  const char* image = std::getenv("HOSTILE_INNER_IMAGE");
  for (int i = 0; i < 2; ++i) {
    char here[4096] = {};
    if (image == nullptr || getcwd(here, sizeof here - 1) == nullptr || pipe2(ends[i], O_CLOEXEC) != 0)
      return "no inner jobs";
    const Text folder = Text(here) + "/inner-" + std::to_string(i);
    mkdir(folder.c_str(), 0700);
    pids[i] = fork();
    if (pids[i] == 0) {
      dup2(ends[i][1], 1);
      execl("/glidepod/bin/apptainer", "apptainer", "exec", "-C", "-W", folder.c_str(), "--pwd",
            folder.c_str(), image, self, "inner", nullptr);
      _exit(127);
    }
    close(ends[i][1]);
  }
  for (int i = 0; i < 2; ++i) {
    char text[4096];
    for (ssize_t got; (got = read(ends[i][0], text, sizeof text)) > 0;)
      said[i].append(text, static_cast<std::size_t>(got));
    int status = 0;
    waitpid(pids[i], &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return "an inner job did not end well: " + said[i];
  }
  return said[0] == said[1] ? "two jobs at once are one user: " + said[0] : "";
}

}  // namespace
