// What an old kernel does not know, what a node has used up, and who does not listen.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <unistd.h>

#include "lib/wire/socket.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

TEST_CASE("shortage: jobs and sessions start where close_range is missing or half there") {
  for (const int code : {ENOSYS, EINVAL, EPERM}) {
    CAPTURE(code);
    // 5.9 and 5.10 have it without CLOSE_RANGE_CLOEXEC, and answer EINVAL to that.
    Session session({.prepare = [code] {
      if (code == EINVAL)
        fail_system_call(SCMP_SYS(close_range), code, 2, 1);
      else
        fail_system_call(SCMP_SYS(close_range), code);
      // What a careless runtime has left open.
      const int left = ::open("/dev/null", O_RDONLY);
      if (left < 0 || ::fcntl(left, F_DUPFD, 300) != 300) ::_exit(126);
    }});
    CHECK(session.output_of({"/job", "descriptors"}) == "0 1 2 ");
    const auto launch = launch_of({"/job", "deaf"});
    session.agent.send_launch(launch);
    session.agent.expect<wire::Started>();
    session.agent.wait_for_output("ready");
    wire::OpenSession open{launch.job, 1, {}};
    open.request.command = "exit 4";
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    session.agent.send(open, {null.get(), null.get(), null.get()});
    session.agent.expect<wire::SessionStarted>();
    CHECK(session.agent.expect<wire::SessionEnded>().status == ExitStatus::exited(4));
    open.session = 2;
    open.request.command = "sleep 1000";
    session.agent.send(open, {null.get(), null.get(), null.get()});
    session.agent.expect<wire::SessionStarted>();
    // The session's supervisor does not hold glue's connection open.
    CHECK(session.end(SIGKILL) == ExitStatus::signaled(SIGKILL));
    CHECK(session.agent.closed());
  }
}

TEST_CASE("shortage: without an inotify instance glue finds the agent all the same") {
  for (const int number : {SCMP_SYS(inotify_init1), SCMP_SYS(inotify_add_watch)}) {
    Child glue = start_glue({.prepare = [number] {
      fail_system_call(number, number == SCMP_SYS(inotify_init1) ? EMFILE : ENOSPC);
    }});
    Loop pause = Loop::create().value();
    REQUIRE(pause.run_once(Milliseconds(300)).ok());  // it looks before there is an agent
    FakeAgent agent;
    CHECK(agent.accept().container == "payload-0");
    CHECK(agent.run({"/job", "exit", "3"}).status == ExitStatus::exited(3));
    agent.hang_up();
    agent.accept();
    REQUIRE(glue.signal(SIGTERM).ok());
    CHECK(glue.wait().value().status == ExitStatus::exited(143));
  }
}

TEST_CASE("shortage: a log that nobody reads does not hold glue up, and what was lost is counted") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const std::string full(65536, '.');
  REQUIRE(::fcntl(write_end.get(), F_SETPIPE_SZ, 65536) == 65536);
  Session session({.stderr_fd = write_end.get()});
  session.agent.beat();
  REQUIRE(::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) == 0);
  std::string shown(65536, '\0');
  REQUIRE(::read(read_end.get(), shown.data(), shown.size()) > 0);
  REQUIRE(::write(write_end.get(), full.data(), full.size()) == 65536);
  for (int i = 0; i < 3; ++i) CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  session.agent.beat();  // it reports first, then writes its line
  REQUIRE(::read(read_end.get(), shown.data(), shown.size()) == 65536);
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  session.agent.beat();
  shown.assign(65536, '\0');
  const ssize_t got = ::read(read_end.get(), shown.data(), shown.size());
  REQUIRE(got > 0);
  shown.resize(static_cast<std::size_t>(got));
  CHECK(shown.starts_with("glue: event=lines_lost lines=6\nglue: event=job_started"));
  CHECK(session.end(SIGTERM) == ExitStatus::exited(143));
}

TEST_CASE("shortage: a launch whose child cannot be watched fails, and leaves no process") {
  // Descriptors up to 8 are glue's own and the launch's; the report's pipe is what comes then.
  Session session({.prepare = [] {
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    fail_system_call(SCMP_SYS(epoll_ctl), ENOSPC, 2, 9);
  }});
  const auto failed = session.agent.fail(launch_of({"/job", "polite"}));
  CHECK(failed.fault == wire::Fault::infrastructure);
  CHECK(failed.message.find("No space left on device") != std::string::npos);
  CHECK(processes_with("polite") == 0);
  session.agent.beat();
}

TEST_CASE("shortage: a child that hangs before its program is ended") {
  // The filter's answer to chdir never comes: its listener stays open in glue, and nobody reads there.
  Session session({.prepare =
                       [] {
                         scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
                         if (seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(chdir), 0) != 0 ||
                             seccomp_load(filter) != 0)
                           ::_exit(126);
                       },
                   .limits = [](glue::ServerOptions& options) { options.launch_limit = Milliseconds(500); }});
  const auto failed = session.agent.fail(launch_of({"/job", "exit", "0"}));
  CHECK(failed.fault == wire::Fault::infrastructure);
  CHECK(failed.message == "the job's process did not start its program within 0 s");
  session.agent.beat();
  const auto stopped = launch_of({"/job", "exit", "0"});
  session.agent.send_launch(stopped);
  session.agent.send(wire::Signal{stopped.job, SIGKILL});
  session.agent.expect<wire::Started>();
  CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("shortage: glue ends although its agent does not read") {
  const Fd listener = wire::listen_at(k_socket, 0600).value();
  Child glue = start_glue();
  pollfd wait{.fd = listener.get(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&wait, 1, 20'000) == 1);
  const Fd agent = wire::accept_from(listener).value();
  // More to answer than the socket takes back.
  std::string bytes;
  wire::Writer one;
  const wire::Beat beat{1};
  fields(one, beat);
  const std::string body = one.take();
  for (int i = 0; i < 5000; ++i) {
    wire::Writer frame;
    frame(static_cast<std::uint32_t>(body.size()), wire::Type::beat, std::uint32_t{0});
    bytes += frame.take() + body;
  }
  REQUIRE(::write(agent.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  Loop pause = Loop::create().value();
  REQUIRE(pause.run_once(Milliseconds(300)).ok());
  REQUIRE(glue.signal(SIGTERM).ok());
  CHECK(glue.wait().value().status == ExitStatus::exited(143));
  ::unlink(k_socket);
}
