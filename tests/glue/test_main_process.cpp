#include "glue/main_process.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include "tests/glue/stand_ins.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using namespace glidepod::glue::stand_ins;

namespace {
wire::Launch sample() {
  wire::Launch launch;
  launch.job = 7;
  launch.argv = {"/bin/program"};
  launch.links = {{"/a", "/scratch/a"}};
  launch.uid = launch.gid = 5001;
  return launch;
}

struct Job {
  Loop loop = Loop::create().value();
  Image image;
  int reports = 0, told = 0;
  MainProcess main{loop, sample(), {}, "/scratch", [this](const auto&, const auto&) { ++told; }};

  Result<void> start() {
    return main.start(image, {}, Filter::build().value(), ControlGroup("/none"), [this] { ++reports; });
  }
  pid_t started() {
    REQUIRE(start());
    scene.begun.front().end();
    REQUIRE(main.read_report()->ok());
    return main.pid();
  }
};

rusage usage(int user_s, int system_us, long max_rss) {
  rusage usage{};
  usage.ru_utime.tv_sec = user_s;
  usage.ru_stime.tv_usec = system_us;
  usage.ru_maxrss = max_rss;
  return usage;
}
}  // namespace

TEST_CASE("main process: its report tells whether its program runs") {
  scene = {};
  Job job;
  REQUIRE(job.start());
  CHECK(job.main.is_starting());
  CHECK(scene.links == 1);
  CHECK_FALSE(job.main.read_report().has_value());
  CHECK(job.main.is_starting());
  SUBCASE("it runs") {
    scene.last().end();
    pass(job.loop, Milliseconds(0));
    CHECK(job.reports == 1);
    const auto report = job.main.read_report();
    REQUIRE(report.has_value());
    CHECK(report->ok());
  }
  SUBCASE("it does not") {
    scene.last().tell(ChildReport{.step = Step::program, .code = ENOENT});
    pass(job.loop, Milliseconds(0));
    const auto report = job.main.read_report();
    REQUIRE(report.has_value());
    CHECK(report->error().message() == "/bin/program is not in /scratch: No such file or directory");
  }
  SUBCASE("nobody wants to know any more") {
    job.main.close_report();
  }
  SUBCASE("it hangs, and is given up") {
    CHECK(job.main.give_up().message().starts_with("the job's process hangs in the kernel"));
  }
  CHECK_FALSE(job.main.is_starting());
  const int reports = job.reports;
  scene.last().end();
  pass(job.loop, Milliseconds(0));
  CHECK(job.reports == reports);
}

TEST_CASE("main process: of one that cannot be started nothing remains") {
  scene = {};
  {
    Job job;
    SUBCASE("no links") {
      scene.no_links = true;
      CHECK(job.start().error().code() == EROFS);
    }
    SUBCASE("no process") {
      scene.no_child = true;
      CHECK(job.start().error().code() == EAGAIN);
    }
  }
  CHECK(scene.links == 0);
}

TEST_CASE("main process: a signal is for it alone, but for those that suspend and continue a job") {
  scene = {.processes = {process(10, 'S'), process(11, 'S')}};
  Job job;
  const pid_t pid = job.started();
  job.main.signal(SIGUSR1);
  CHECK(scene.taken() == Sent{{pid, SIGUSR1}});
  for (const int number : {SIGSTOP, SIGTSTP, SIGCONT}) {
    job.main.signal(number);
    CHECK(scene.taken() == Sent{{10, number}, {11, number}});
    CHECK(job.main.suspended() == (number != SIGCONT));
  }
}

TEST_CASE("main process: it is ended by SIGTERM only where the agent has sent no signal for that") {
  scene = {.processes = {process(10, 'S')}};
  Job job;
  const pid_t pid = job.started();
  SUBCASE("it has sent none") {
    job.main.terminate();
    CHECK(scene.taken() == Sent{{pid, SIGTERM}});
  }
  SUBCASE("the job is suspended") {
    job.main.signal(SIGTSTP);
    scene.sent.clear();
    job.main.terminate();
    CHECK(scene.taken() == Sent{{pid, SIGTERM}, {10, SIGCONT}});
  }
  SUBCASE("it has") {
    job.main.signal(SIGQUIT);
    scene.sent.clear();
    job.main.terminate();
    CHECK(scene.taken() == Sent{});
  }
}

TEST_CASE("main process: what all have used that were reaped is the job's, and its end is told once") {
  scene = {.oom_kills = 3};
  Job job;
  const pid_t pid = job.started();
  CHECK(job.main.account().started_ns == 2'000'000'000'000);
  scene.now += std::chrono::seconds(1);
  CHECK(job.main.reaped(pid + 100, 0, usage(1, 10, 500)));
  CHECK_FALSE(job.main.status().has_value());
  CHECK(job.main.reaped(pid, 3 << 8, usage(2, 20, 400)));
  CHECK(job.main.status() == ExitStatus::exited(3));
  scene.now += std::chrono::seconds(1);
  // Another that has its pid.
  CHECK(job.main.reaped(pid, SIGKILL, usage(4, 40, 600)));
  CHECK(job.main.status() == ExitStatus::exited(3));
  const auto& account = job.main.account();
  CHECK(account.job == 7);
  CHECK(account.user_microseconds == 7'000'000);
  CHECK(account.system_microseconds == 70);
  CHECK(account.max_rss_kib == 600);
  CHECK(account.ended_ns == 2'001'000'000'000);
  const auto exited = job.main.exited({.oom_kills = 5});
  CHECK(exited.job == 7);
  CHECK(exited.status == ExitStatus::exited(3));
  CHECK(exited.ended_ns == account.ended_ns);
  CHECK(exited.oom_kills == 2);
  CHECK(exited.memory_limit_kib == 11);
  CHECK(exited.memory_peak_kib == 12);
  CHECK(exited.max_rss_kib == 600);
}

TEST_CASE("main process: what counts beside it is none of it, and is handed over with the rest") {
  scene = {.processes = {process(10, 'R')}};
  Job job;
  job.started();
  job.main.signal(SIGSTOP);
  job.main.counting().begin();
  const pid_t counter = scene.last().pid;
  wire::OpenSession message;
  message.session = 2;
  REQUIRE(job.main.sessions().open(job.main.launch(), message, {}, Filter::build().value()));
  const pid_t supervisor = scene.last().pid;
  scene.last().tell(SessionReport{});
  pass(job.loop, Milliseconds(0));
  CHECK(job.told == 1);
  CHECK(job.main.hand_over() == counter);
  scene.last().end();
  scene.sent.clear();
  pass(job.loop, std::chrono::minutes(1));
  CHECK(scene.taken() == Sent{});
  CHECK(job.told == 1);
  CHECK_FALSE(job.main.reaped(counter, SIGKILL, usage(9, 9, 9)));
  CHECK(job.main.account().max_rss_kib == 0);
  CHECK(job.main.reaped(supervisor, 0, usage(1, 1, 1)));
  job.main.sessions().close(2);
  CHECK(scene.taken() == Sent{});
}
