// Who is let in beside a job, with the real agent, glue and apptainer under its other names.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/pilot-agent/small_cluster.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_image = "docker://reg.example/a:1";
const std::string k_digest = "sha256:" + std::string(64, 'a');

bool not_root() {
  if (::geteuid() == 0) return false;
  MESSAGE("skipped: needs root");
  return true;
}

struct Visited : SmallCluster {
  explicit Visited() : SmallCluster(1) {
    registry["reg.example/a"] = k_digest;
    REQUIRE(until([&] { return logged("event=pod"); }));
    std::filesystem::copy_file(apptainer(), folder() + "/job-shell");
  }
  std::string sandbox() const { return folder() + "/scratch/dir_1"; }
  // A session as sshd starts it.
  Child visit(uid_t uid, const std::string& command, const std::string& where) {
    out_.reset(::open((sandbox() + "/session").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    return Child::fork([&] {
             ::dup2(out_.get(), 1);
             ::dup2(out_.get(), 2);
             ::setenv("SSH_ORIGINAL_COMMAND", command.c_str(), 1);
             ::setenv("TEST_EXEC_SOCKET", (folder() + "/exec.sock").c_str(), 1);
             if (::setgroups(0, nullptr) != 0 || ::setgid(uid) != 0 || ::setuid(uid) != 0) return 99;
             ::execl((folder() + "/job-shell").c_str(), "job-shell", "-c", ("job-shell " + where).c_str(),
                     nullptr);
             return 98;
           })
        .value();
  }
  Ran end_of(Child child) {
    bool ended = false;
    REQUIRE(loop.watch(child.pidfd().get(), EPOLLIN, [&](std::uint32_t) { ended = true; }).ok());
    until([&] { return ended; });
    loop.forget(child.pidfd().get());
    Ran ran;
    ran.status = child.wait()->status;
    ran.out = read_file(sandbox() + "/session").value();
    return ran;
  }
  Ran visited(uid_t uid, const std::string& command) { return end_of(visit(uid, command, sandbox())); }
  int start_job(const std::string& script) {
    const int job = start({k_image, {"/bin/sh", "-c", script}});
    REQUIRE(until([&] { return logged("event=started"); }));
    return job;
  }

 private:
  Fd out_;
};

}  // namespace

TEST_CASE("agent: a job's user is let in, and the job's own end is its own") {
  if (not_root()) return;
  Visited c;
  const int job = c.start_job("until [ -e go ]; do sleep 0.05; done; exit 3");
  auto ran = c.visited(29001, "echo $IMAGE; id -u; id -G; pwd; exit 7");
  CHECK(ran.status == ExitStatus::exited(7));
  CHECK(ran.out == "reg.example/a:1\n29001\n29001 30001\n" + c.sandbox() + "\n");
  CHECK(c.visited(29001, "kill -KILL $$").status == ExitStatus::exited(137));
  c.visited(29001, "touch go");  // it may end with the job, which sees the file before touch has ended
  CHECK(c.wait(job).status == ExitStatus::exited(3));
  ran = c.visited(29001, "echo in");
  CHECK(ran.status == ExitStatus::exited(255));
  CHECK(ran.out == "condor_ssh_to_job: no job of this user runs in that folder\n");
}

TEST_CASE("agent: neither root nor another user is let in") {
  if (not_root()) return;
  Visited c;
  const int job = c.start_job("sleep 60");
  for (const uid_t uid : {0U, 29002U, 65534U}) {
    CAPTURE(uid);
    const auto ran = c.visited(uid, "echo in");
    CHECK(ran.status == ExitStatus::exited(255));
    CHECK(ran.out.find("no job of this user runs in that folder") != std::string::npos);
  }
  // Nor the right one into a sandbox that is not its job's.
  CHECK(c.end_of(c.visit(29001, "echo in", c.folder() + "/scratch/dir_2")).status == ExitStatus::exited(255));
  CHECK_FALSE(c.logged("event=session "));
  REQUIRE(c.child(job).signal(SIGKILL).ok());
  CHECK(c.wait(job).status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("agent: a session ends with the job, and with whoever had it") {
  if (not_root()) return;
  Visited c;
  const int job = c.start_job("until [ -e go ]; do sleep 0.05; done; exit 4");
  SUBCASE("the job") {
    Child session = c.visit(29001, "touch go; exec sleep 60", c.sandbox());
    CHECK(c.wait(job).status == ExitStatus::exited(4));
    const auto ran = c.end_of(std::move(session));
    CHECK(ran.status == ExitStatus::exited(255));
    CHECK(ran.out == "condor_ssh_to_job: the job has ended\n");
  }
  SUBCASE("its client") {
    Child session = c.visit(29001, "echo up; exec sleep 60", c.sandbox());
    REQUIRE(c.until([&] { return c.logged("event=session "); }));
    REQUIRE(session.signal(SIGKILL).ok());
    CHECK(c.end_of(std::move(session)).status == ExitStatus::signaled(SIGKILL));
    CHECK(c.until([&] { return c.logged("event=session_ended"); }));
    const auto next = c.visited(29001, "echo in");
    CHECK(next.status == ExitStatus::exited(0));
    CHECK(next.out == "in\n");
    REQUIRE(replace_file(c.sandbox() + "/go", "", 0644).ok());
    CHECK(c.wait(job).status == ExitStatus::exited(4));
  }
}

TEST_CASE("agent: the names that HTCondor calls do nothing") {
  if (not_root()) return;
  const std::string program = SmallCluster::apptainer();
  for (const char* name : {"condor_nsenter", "condor_ssh_to_job_shell_setup"}) {
    auto child = Child::fork([&] {
                   ::execl(program.c_str(), name, "/usr/bin/nsenter", "-t", "1", "-S", "0", nullptr);
                   return 98;
                 }).value();
    CHECK(child.wait()->status == ExitStatus::exited(125));
  }
}
