#include "glue/job_sessions.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>

#include "tests/glue/stand_ins.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using namespace glidepod::glue::stand_ins;

namespace {
struct Job {
  Loop loop = Loop::create().value();
  std::vector<JobSessions::Message> told;
  std::vector<int> fds;  // with the last of them
  JobSessions sessions{loop, 7, "/scratch",
                       [this](const JobSessions::Message& message, const std::vector<int>& with) {
                         told.push_back(message);
                         fds = with;
                       }};

  Result<void> open(std::uint64_t number, bool terminal = false) {
    wire::OpenSession message;
    message.job = 7;
    message.session = number;
    message.request.terminal = terminal;
    return sessions.open({}, message, {}, Filter::build().value());
  }
  // All that its supervisor has told so far is read.
  void read() { pass(loop, Milliseconds(0)); }
  template <typename Message>
  Message last() {
    REQUIRE_FALSE(told.empty());
    REQUIRE(std::holds_alternative<Message>(told.back()));
    return std::get<Message>(told.back());
  }
};

constexpr SessionReport k_started;

SessionReport report(SessionReport::What what, int code = 0) {
  SessionReport report;
  report.what = what;
  report.status = ExitStatus::exited(code);
  return report;
}
}  // namespace

TEST_CASE("sessions: one starts and ends, as its supervisor tells, and its number is free again") {
  scene = {};
  Job job;
  REQUIRE(job.open(3));
  job.read();
  CHECK(job.told.empty());
  CHECK(job.open(3).error().message() == "a session of this number exists");
  REQUIRE(job.open(4));
  Begun& third = scene.begun.front();
  third.tell(k_started);
  job.read();
  CHECK(job.last<wire::SessionStarted>().job == 7);
  CHECK(job.last<wire::SessionStarted>().session == 3);
  CHECK(job.fds.empty());
  third.tell(report(SessionReport::What::ended, 5));
  job.read();
  CHECK(job.told.size() == 1);
  third.end();
  job.read();
  CHECK(job.last<wire::SessionEnded>().session == 3);
  CHECK(job.last<wire::SessionEnded>().status == ExitStatus::exited(5));
  CHECK(job.told.size() == 2);
  CHECK(job.open(3));
}

TEST_CASE("sessions: a terminal goes away with the message that one has started") {
  scene = {};
  Job job;
  REQUIRE(job.open(3, true));
  scene.last().tell(k_started);
  job.read();
  CHECK(job.last<wire::SessionStarted>().session == 3);
  REQUIRE(job.fds.size() == 1);
  CHECK(::fcntl(job.fds[0], F_GETFD) == -1);  // nor is it glue's any more
}

TEST_CASE("sessions: one that fails is told once, with whose fault it is") {
  scene = {};
  Job job;
  REQUIRE(job.open(3));
  scene.last().tell(report(SessionReport::What::failed));
  scene.last().end();
  job.read();
  REQUIRE(job.told.size() == 1);
  CHECK(job.last<wire::SessionFailed>().session == 3);
  CHECK(job.last<wire::SessionFailed>().fault == wire::Fault::user);
  CHECK(job.last<wire::SessionFailed>().message == "no shell, nor in /scratch");
  CHECK(job.open(3));
}

TEST_CASE("sessions: one whose supervisor was killed was killed") {
  scene = {};
  Job job;
  REQUIRE(job.open(3));
  scene.last().tell(k_started);
  scene.last().end();
  job.read();
  REQUIRE(job.told.size() == 2);
  CHECK(job.last<wire::SessionEnded>().status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("sessions: one that cannot be opened is an error, and its number stays free") {
  scene = {};
  Job job;
  SUBCASE("no process") {
    scene.no_child = true;
    CHECK(job.open(3).error().message() == "fork: Resource temporarily unavailable");
    CHECK(scene.taken() == Sent{});
  }
  SUBCASE("no watch: its process is told to end") {
    scene.no_watch = true;
    CHECK(job.open(3).error().code() == EPERM);
    CHECK(scene.taken() == Sent{{scene.last().pid, SIGTERM}});
  }
  scene.no_child = scene.no_watch = false;
  CHECK(job.open(3));
}

TEST_CASE("sessions: one is closed by SIGTERM, while its supervisor is there") {
  scene = {};
  Job job;
  REQUIRE(job.open(3));
  const pid_t third = scene.last().pid;
  REQUIRE(job.open(4));
  job.sessions.close(5);
  CHECK(scene.taken() == Sent{});
  job.sessions.close(3);
  CHECK(scene.taken() == Sent{{third, SIGTERM}});
  job.sessions.reaped(third);
  job.sessions.close(3);
  CHECK(scene.taken() == Sent{});
  job.sessions.close(4);
  CHECK(scene.taken() == Sent{{scene.last().pid, SIGTERM}});
}

TEST_CASE("sessions: nothing is told of them once they are forgotten") {
  scene = {};
  Job job;
  REQUIRE(job.open(3));
  scene.last().tell(k_started);
  job.sessions.forget();
  job.read();
  CHECK(job.told.empty());
}
