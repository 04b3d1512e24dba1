// Processes that make glue their tracer (PTRACE_TRACEME): they stop at each signal until glue lets them go
// on.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {

std::vector<std::string> traced(const std::string& how) {
  return {"/job", "traced", how};
}

void wait_for_state(pid_t pid, char state) {
  Loop pause = Loop::create().value();
  for (int i = 0; i < 1000; ++i) {
    const auto stat = glue::parse_stat(read_file(fmt::format("/proc/{}/stat", pid)).value());
    if (stat && stat->state == state) return;
    REQUIRE(pause.run_once(Milliseconds(10)).ok());
  }
  FAIL("the process never came to state " << state);
}

}  // namespace

TEST_CASE("traced: a job ends as it would have ended untraced") {
  Session session;
  const auto ended = session.agent.run(traced("raise"));
  CHECK(ended.status == ExitStatus::exited(7));
  CHECK(ended.clean);
  const auto fault = session.agent.run(traced("fault")).status;
  CHECK(fault.how == ExitStatus::How::signaled);
  CHECK(fault.number == SIGSEGV);
  // To a tracer execve(2) is a SIGTRAP, which nobody has sent.
  CHECK(session.agent.run(traced("exec")).status == ExitStatus::exited(9));
}

TEST_CASE("traced: every signal of the agent arrives") {
  Session session;
  const auto launch = launch_of(traced("wait"));
  session.agent.send_launch(launch);
  const auto started = session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  session.agent.send(wire::Signal{launch.job, SIGSTOP});
  wait_for_state(started.pid, 'T');
  session.agent.send(wire::Signal{launch.job, SIGCONT});
  wait_for_state(started.pid, 'S');
  session.agent.send(wire::Signal{launch.job, SIGUSR1});
  const auto ended = session.agent.expect<wire::JobEnded>();
  CHECK(ended.status == ExitStatus::exited(7));
  CHECK(ended.clean);

  for (const int number : {SIGTERM, SIGKILL}) {
    const auto again = launch_of(traced("wait"));
    session.agent.send_launch(again);
    session.agent.expect<wire::Started>();
    session.agent.wait_for_output("ready");
    session.agent.send(wire::Signal{again.job, number});
    CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::signaled(number));
  }
}

TEST_CASE("traced: a process that the job left to glue goes on too") {
  Session session;
  const auto ended = session.agent.run(traced("orphan"));
  CHECK(ended.status == ExitStatus::exited(0));
  CHECK(ended.clean);
}

TEST_CASE("traced: what a process has used is counted once, whichever of its threads is traced") {
  Session session;
  const auto ended = session.agent.run(traced("thread"));
  CHECK(ended.status == ExitStatus::exited(0));
  const auto used = ended.user_microseconds + ended.system_microseconds;
  CHECK(used >= 450'000);
  CHECK(used < 900'000);
}

TEST_CASE("traced: a session's main process as well") {
  Session session;
  const auto launch = launch_of({"/job", "deaf"});
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  wire::OpenSession open{launch.job, 1, {}};
  open.request.command = "exec /job traced raise";
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  session.agent.send(open, {null.get(), null.get(), null.get()});
  session.agent.expect<wire::SessionStarted>();
  CHECK(session.agent.expect<wire::SessionEnded>().status == ExitStatus::exited(7));
  session.agent.send(wire::Signal{launch.job, SIGKILL});
  CHECK(session.agent.expect<wire::JobEnded>().clean);
}
