// What a job leaves in shared folders and in System V IPC: gone, and nothing else is.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "glue/cleanup.hpp"
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
        "an earlier job could not be cleaned up here");
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
