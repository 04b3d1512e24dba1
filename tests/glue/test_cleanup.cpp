// What a job leaves in shared folders and in System V IPC: gone, and nothing else is.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "glue/cleanup.hpp"
#include "glue/ipc.hpp"
#include "glue/processes.hpp"
#include "lib/base/file.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {

std::size_t entries_in(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

std::size_t left_behind() {
  std::size_t count = 0;
  for (const auto& folder : glue::k_shared_folders) count += entries_in(folder);
  return count;
}

}  // namespace

TEST_CASE("cleanup: files in every shared folder are removed") {
  Session session;
  const auto ended = session.agent.run(shell(
      "for d in /tmp /var/tmp /dev/shm; do mkdir -p $d/a/b/c; echo x > $d/a/b/c/file; echo y > $d/.hidden; "
      "mkfifo $d/fifo; ln -s /etc/passwd $d/link; done"));
  CHECK(ended.status == ExitStatus::exited(0));
  CHECK(ended.clean);
  CHECK(ended.files_removed == 3 * 7);
  CHECK(left_behind() == 0);
}

TEST_CASE("cleanup: folders without any permission, links and hard links lead nowhere") {
  Session session;
  REQUIRE((::mkdir("/tmp", 01777) == 0 || errno == EEXIST));
  ::chmod("/tmp", 01777);
  REQUIRE(replace_file("/etc/precious", "kept", 0644).ok());
  REQUIRE(::mkdir("/keep", 0777) == 0);
  ::chmod("/keep", 0777);
  REQUIRE(replace_file("/keep/file", "kept", 0666).ok());
  const auto ended = session.agent.run(shell(
      "mkdir -p /tmp/t/locked/deep /tmp/t/ro; ln -s /keep /tmp/t/keep; ln -s /keep/file /tmp/t/locked/k; "
      "ln -s / /tmp/root; ln -s ../.. /tmp/t/ro/up; ln /keep/file /tmp/t/hard 2>/dev/null; "
      "echo mine > /tmp/t/mine; ln /tmp/t/mine /tmp/t/mine2; : > /tmp/t/locked/deep/f; "
      "chmod 000 /tmp/t/locked/deep /tmp/t/mine; chmod 555 /tmp/t/ro; chmod 000 /tmp/t/locked; chmod 100 "
      "/tmp/t"));
  CHECK(ended.clean);
  CHECK(left_behind() == 0);
  CHECK(read_file("/keep/file").value() == "kept");
  CHECK(read_file("/etc/precious").value() == "kept");
  std::filesystem::remove_all("/keep");
}

TEST_CASE("cleanup: very deep and very wide trees") {
  Session session;
  auto ended = session.agent.run({"/job", "nest", "/tmp/deep", "20000"});
  REQUIRE(ended.status == ExitStatus::exited(0));
  CHECK(ended.clean);
  CHECK(ended.files_removed == 20001);
  ended = session.agent.run(
      shell("cd /tmp && mkdir wide && cd wide && seq 1 5000 | xargs touch && "
            "seq 1 2000 | sed 's/^/d/' | xargs mkdir && for i in 1 2 3; do : > d$i/x; done"));
  CHECK(ended.clean);
  CHECK(ended.files_removed == 7004);
  CHECK(left_behind() == 0);
}

TEST_CASE("cleanup: what others own stays, and the job's own below it goes") {
  Session session;
  session.agent.run({"/job", "exit", "0"});
  REQUIRE(::mkdir("/tmp/image", 0755) == 0);
  REQUIRE(::mkdir("/tmp/image/open", 01777) == 0);
  ::chmod("/tmp/image/open", 01777);
  REQUIRE(replace_file("/tmp/image/open/file", "kept", 0644).ok());
  REQUIRE(replace_file("/dev/shm/other", "kept", 0644).ok());
  REQUIRE(::chown("/dev/shm/other", k_user + 1, k_user + 1) == 0);
  const auto ended =
      session.agent.run(shell("mkdir /tmp/image/open/mine; : > /tmp/image/open/mine/x; : > /dev/shm/mine"));
  CHECK(ended.files_removed == 3);
  CHECK(ended.clean);
  CHECK(read_file("/tmp/image/open/file").value() == "kept");
  CHECK(read_file("/dev/shm/other").value() == "kept");
  CHECK(entries_in("/tmp/image/open") == 1);
  std::filesystem::remove_all("/tmp/image");
  std::filesystem::remove("/dev/shm/other");
}

TEST_CASE("cleanup: other mounts are not entered, and what cannot be removed is told") {
  Session session;
  session.agent.run({"/job", "exit", "0"});
  REQUIRE(::mkdir("/elsewhere", 0777) == 0);
  REQUIRE(replace_file("/elsewhere/file", "kept", 0644).ok());
  REQUIRE(::chown("/elsewhere", k_user, k_user) == 0);
  REQUIRE(::chown("/elsewhere/file", k_user, k_user) == 0);
  REQUIRE(::mkdir("/tmp/mount", 0755) == 0);
  REQUIRE(::chown("/tmp/mount", k_user, k_user) == 0);
  REQUIRE(::mount("/elsewhere", "/tmp/mount", nullptr, MS_BIND, nullptr) == 0);
  const auto ended = session.agent.run({"/job", "exit", "0"});
  CHECK_FALSE(ended.clean);
  CHECK(read_file("/elsewhere/file").value() == "kept");
  CHECK(session.agent.fail(launch_of({"/job", "exit", "0"})).message ==
        "what an earlier job left in this container cannot be removed");
  REQUIRE(::umount("/tmp/mount") == 0);
  std::filesystem::remove_all("/tmp/mount");
  std::filesystem::remove_all("/elsewhere");
}

TEST_CASE("cleanup: what a job of the user has left elsewhere in the pod is gone before the next begins") {
  REQUIRE(replace_file("/dev/shm/left", "secret", 0600).ok());
  REQUIRE(::chown("/dev/shm/left", k_user, k_user) == 0);
  std::filesystem::create_directories("/tmp");
  REQUIRE(replace_file("/tmp/of_image", "kept", 0644).ok());
  REQUIRE(::chown("/tmp/of_image", k_user, k_user) == 0);
  Session session;
  const auto ended = session.agent.run(shell("test ! -e /dev/shm/left && test -e /tmp/of_image"));
  CHECK(ended.status == ExitStatus::exited(0));
  CHECK(ended.clean);
}

TEST_CASE("cleanup: no job begins where what was left cannot be removed") {
  Session session;
  REQUIRE(::mkdir("/elsewhere", 0777) == 0);
  REQUIRE(::mkdir("/dev/shm/mount", 0755) == 0);
  REQUIRE(::chown("/dev/shm/mount", k_user, k_user) == 0);
  REQUIRE(::mount("/elsewhere", "/dev/shm/mount", nullptr, MS_BIND, nullptr) == 0);
  REQUIRE(::chown("/dev/shm/mount", k_user, k_user) == 0);
  const auto failed = session.agent.fail(launch_of({"/job", "exit", "0"}));
  CHECK(failed.fault == wire::Fault::infrastructure);
  CHECK(failed.message == "what an earlier job of user 29999 has left in shared folders cannot be removed");
  REQUIRE(::umount("/dev/shm/mount") == 0);
  std::filesystem::remove_all("/dev/shm/mount");
  std::filesystem::remove_all("/elsewhere");
}

TEST_CASE("cleanup: IPC objects of the job are removed, others stay") {
  const int others = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
  REQUIRE(others >= 0);
  Session session;
  const auto ended = session.agent.run({"/job", "ipc"});
  REQUIRE(ended.status == ExitStatus::exited(0));
  CHECK(ended.files_removed == 5);
  CHECK(ended.clean);
  for (const char* table : {"/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"}) {
    const auto text = read_file(table).value();
    CHECK(std::count(text.begin(), text.end(), '\n') == (std::string_view(table).ends_with("shm") ? 2 : 1));
  }
  CHECK(left_behind() == 0);
  ::shmctl(others, IPC_RMID, nullptr);
}

namespace {

union SemaphoreArgument {
  int value;
  semid_ds* set;
};

// Makes one of each kind and says that they are somebody else's, as whoever made them may. What is attached
// stays until it is detached, whoever removes it.
bool give_away(unsigned uid) {
  const int memory = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
  const int set = ::semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  const int queue = ::msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  shmid_ds of_memory{};
  semid_ds of_set{};
  msqid_ds of_queue{};
  SemaphoreArgument argument{};
  argument.set = &of_set;
  if (::shmctl(memory, IPC_STAT, &of_memory) != 0 || ::semctl(set, 0, IPC_STAT, argument) != 0 ||
      ::msgctl(queue, IPC_STAT, &of_queue) != 0)
    return false;
  of_memory.shm_perm.uid = of_set.sem_perm.uid = of_queue.msg_perm.uid = uid;
  return ::shmat(memory, nullptr, 0) != reinterpret_cast<void*>(-1) &&
         ::shmctl(memory, IPC_SET, &of_memory) == 0 && ::semctl(set, 0, IPC_SET, argument) == 0 &&
         ::msgctl(queue, IPC_SET, &of_queue) == 0;
}

// Lines of all three tables, without their headers.
std::ptrdiff_t ipc_objects() {
  std::ptrdiff_t count = 0;
  for (const char* table : {"/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"}) {
    const auto text = read_file(table).value();
    count += std::count(text.begin(), text.end(), '\n') - 1;
  }
  return count;
}

}  // namespace

TEST_CASE("cleanup: IPC objects that another user says are this one's are nobody's trouble") {
  const Pipe ready;
  Neighbour neighbour(k_user + 1, [&] {
    if (give_away(k_user)) ready.tell();
    return ::pause();
  });
  REQUIRE(ready.told());
  Session session;
  for (int i = 0; i < 6; ++i) CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  CHECK(ipc_objects() == 3);
  // Who made them can always remove them.
  CHECK(Neighbour(k_user + 1, [] { return glue::remove_ipc(k_user + 1) == 3 ? 0 : 1; }).wait() ==
        ExitStatus::exited(0));
  neighbour.end();
  CHECK(ipc_objects() == 0);
}

TEST_CASE("cleanup: IPC objects that a job has said are another user's are removed") {
  REQUIRE(Neighbour(k_user, [] { return give_away(k_user + 1) ? 0 : 1; }).wait() == ExitStatus::exited(0));
  Session session;
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  CHECK(ipc_objects() == 0);
}

TEST_CASE("cleanup: a segment that another user is attached to is in nobody's way, and gone with that one") {
  const auto segment = [](int flags) { return ::shmget(0x5000, 4096, flags | 0666); };
  REQUIRE(Neighbour(k_user, [&] { return segment(IPC_CREAT) >= 0 ? 0 : 1; }).wait() == ExitStatus::exited(0));
  const Pipe ready;
  Neighbour neighbour(k_user + 1, [&] {
    if (::shmat(segment(0), nullptr, 0) != reinterpret_cast<void*>(-1)) ready.tell();
    return ::pause();
  });
  REQUIRE(ready.told());
  Session session;
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  CHECK(ipc_objects() == 1);
  CHECK(segment(0) == -1);
  neighbour.end();
  CHECK(ipc_objects() == 0);
}

namespace {

// /dev/shm is another than the one that install() has noted, until the end of the test.
struct OwnShm {
  const std::string note = "/glidepod/bin/pod-shm";
  OwnShm() { REQUIRE(replace_file(note, "1\n", 0444).ok()); }
  ~OwnShm() { std::filesystem::remove(note); }
};

bool leave_in_shm(const std::string& name) {
  const std::string folder = "/dev/shm/" + name;
  return ::mkdir(folder.c_str(), 0700) == 0 && ::mkdir((folder + "/inner").c_str(), 0700) == 0 &&
         replace_file(folder + "/inner/file", "secret", 0600).ok() && ::chmod(folder.c_str(), 0) == 0 &&
         replace_file(folder + ".file", "secret", 0600).ok();
}

bool leave_in_shm(unsigned uid, const std::string& name) {
  return Neighbour(uid, [&] { return leave_in_shm(name) ? 0 : 1; }).wait() == ExitStatus::exited(0);
}

}  // namespace

TEST_CASE("cleanup: nobody's leavings are in a container's own /dev/shm when the agent hears of it") {
  const OwnShm own;
  REQUIRE(leave_in_shm(k_user, "a"));
  REQUIRE(leave_in_shm(k_user + 1, "b"));
  REQUIRE(leave_in_shm(40000, "c"));
  REQUIRE(replace_file("/dev/shm/of_root", "kept", 0644).ok());
  Session session;
  CHECK(entries_in("/dev/shm") == 1);
  CHECK(read_file("/dev/shm/of_root").value() == "kept");
  CHECK(session.agent.run(shell("echo x >/dev/shm/mine")).files_removed == 1);
  std::filesystem::remove("/dev/shm/of_root");
}

TEST_CASE("cleanup: in a /dev/shm of the whole pod the others' files stay") {
  struct stat info {};
  REQUIRE(::stat("/dev/shm", &info) == 0);
  std::optional<OwnShm> note;
  SUBCASE("as noted") {
    note.emplace();
    REQUIRE(replace_file(note->note, fmt::format("{}\n", info.st_dev), 0444).ok());
  }
  SUBCASE("nothing was noted") {}
  REQUIRE(leave_in_shm(k_user + 1, "b"));
  {
    Session session;
    CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  }
  CHECK(entries_in("/dev/shm") == 2);
  std::filesystem::remove_all("/dev/shm/b");
  std::filesystem::remove_all("/dev/shm/b.file");
}

TEST_CASE("cleanup: a user who stops what it can does not stop the clearing of a container's own /dev/shm") {
  const OwnShm own;
  constexpr int k_folders = 30'000;
  REQUIRE(Neighbour(k_user, [] {
            if (::chdir("/dev/shm") != 0) return 1;
            for (int i = 0; i < k_folders; ++i)
              if (::mkdir(std::to_string(i).c_str(), 0700) != 0) return 1;
            return 0;
          }).wait() == ExitStatus::exited(0));
  const Neighbour stopper(k_user, []() -> int {
    const pid_t self = ::getpid();
    while (true)
      if (const auto all = glue::all_processes())
        for (const auto& process : all.value())
          if (process.pid != self) ::kill(process.pid, SIGSTOP);
  });
  const auto before = std::chrono::steady_clock::now();
  Session session;
  MESSAGE("Hello came after "
          << std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - before).count()
          << " ms");
  CHECK(entries_in("/dev/shm") == 0);
}

TEST_CASE("cleanup: a child that was killed and does not end is waited for once") {
  REQUIRE(leave_in_shm(k_user, "left"));
  glue::Cleaning cleaning({.uid = k_user, .gid = k_user, .groups = {}}, {.to_die = Milliseconds(7)});
  REQUIRE_FALSE(cleaning.done());
  cleaning.overdue();  // killed; it has not ended as long as nobody reaps it
  REQUIRE_FALSE(cleaning.done());
  CHECK(cleaning.limit() == Milliseconds(7));
  cleaning.overdue();
  CHECK(cleaning.done());
  CHECK_FALSE(cleaning.result().complete);
  int status = 0;
  CHECK(::waitpid(-1, &status, 0) > 0);
  std::filesystem::remove_all("/dev/shm/left");
  std::filesystem::remove_all("/dev/shm/left.file");
}

TEST_CASE("cleanup: an order to end is heard while a container's own /dev/shm is cleared") {
  const OwnShm own;
  REQUIRE(Neighbour(k_user, [] {
            if (::chdir("/dev/shm") != 0) return 1;
            for (int i = 0; i < 100'000; ++i)
              if (::mkdir(std::to_string(i).c_str(), 0700) != 0) return 1;
            return 0;
          }).wait() == ExitStatus::exited(0));
  const Pipe log;  // its first line says that it clears; before it is glue it would die of SIGTERM
  auto glue = start_glue({.stderr_fd = log.writer()});
  REQUIRE(log.told());
  const auto before = std::chrono::steady_clock::now();
  REQUIRE(glue.signal(SIGTERM).ok());
  CHECK(glue.wait().value().status == ExitStatus::exited(143));
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(1));
  // What is left then is the next one's.
  Session session;
  CHECK(entries_in("/dev/shm") == 0);
}
