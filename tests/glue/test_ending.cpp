// What a job leaves running: nothing survives it.
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "glue/processes.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {
// Processes below glue: none, once a job has ended.
std::size_t below(const Child& glue) {
  return glue::descendants_of(glue.pid(), glue::all_processes().value()).size();
}
}  // namespace

TEST_CASE("ending: a daemon that left its session and ignores signals is killed") {
  Session session;
  const auto ended = session.agent.run({"/job", "daemon"});
  CHECK(ended.status == ExitStatus::exited(0));
  CHECK(ended.processes_killed == 1);
  CHECK(ended.clean);
  CHECK(below(session.glue) == 0);
}

TEST_CASE("ending: background processes that hold the output do not delay the end") {
  Session session;
  const auto ended = session.agent.run(shell("/job deaf & /job deaf & (/job deaf &) ; exit 7"));
  CHECK(ended.status == ExitStatus::exited(7));
  CHECK(ended.processes_killed == 3);
  CHECK(ended.clean);
  CHECK(below(session.glue) == 0);
}

TEST_CASE("ending: a process that looks like a zombie but has a living thread is killed") {
  Session session;
  const auto ended = session.agent.run({"/job", "zombie-leader"});
  CHECK(ended.processes_killed == 1);
  CHECK(ended.clean);
  CHECK(below(session.glue) == 0);
}

TEST_CASE("ending: stopped processes are killed too") {
  Session session;
  const auto ended = session.agent.run(shell("/job deaf & kill -STOP $!; exit 0"));
  CHECK(ended.processes_killed == 1);
  CHECK(below(session.glue) == 0);
}

TEST_CASE("ending: a fork bomb under a limit of processes is put out") {
  Session session;
  auto launch = launch_of({"/job", "bomb"});
  launch.limits = {{RLIMIT_NPROC, 300, 300}};
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  while (below(session.glue) < 250) ::sched_yield();
  const auto before = std::chrono::steady_clock::now();
  session.agent.send(wire::Signal{launch.job, SIGKILL});
  const auto ended = session.agent.expect<wire::JobEnded>();
  const auto took =
      std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - before).count();
  MESSAGE("a bomb of " << ended.processes_killed << " processes was put out in " << took << " ms");
  CHECK(ended.clean);
  CHECK(ended.processes_killed >= 200);
  CHECK(below(session.glue) == 0);
  CHECK(session.agent.run({"/job", "exit", "4"}).status == ExitStatus::exited(4));
}

TEST_CASE("ending: a job's main process does not outlive a glue that was killed") {
  Session session;
  session.agent.send_launch(launch_of({"/job", "deaf"}));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  CHECK(session.end(SIGKILL) == ExitStatus::signaled(SIGKILL));
  CHECK(session.agent.closed());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (processes_with("deaf") != 0 && std::chrono::steady_clock::now() < deadline) ::sched_yield();
  CHECK(processes_with("deaf") == 0);
}

TEST_CASE("ending: processes of the same user that are not the job's are left alone") {
  auto other = Child::fork([] {
    if (::setuid(k_user) != 0) return 1;
    while (true) ::pause();
  });
  REQUIRE(other.ok());
  Session session;
  CHECK(session.agent.run({"/job", "daemon"}).processes_killed == 1);
  CHECK(other->signal(0).ok());
  CHECK(::kill(other->pid(), 0) == 0);
  REQUIRE(other->signal(SIGKILL).ok());
  CHECK(other->wait().value().status == ExitStatus::signaled(SIGKILL));
}
