#include "pilot-agent/apptainer/report.hpp"

#include <doctest/doctest.h>
#include <signal.h>

using namespace glidepod;
using namespace glidepod::apptainer;

TEST_CASE("report: a line that names the image once and, of a test, says nothing before it") {
  using enum wire::Verb;
  CHECK(failure_line(test, "docker://a", "no such image") == "docker://a: no such image\n");
  CHECK(failure_line(test, "docker://a", "cannot pull docker://a: denied\nmore") ==
        "cannot pull docker://a: denied\n");
  CHECK(failure_line(exec, "docker://a", "no such image") == "apptainer: docker://a: no such image\n");
  CHECK(failure_line(exec, "", "option -x") == "apptainer: option -x\n");
}

TEST_CASE("report: a process ends as the job ended, with no core of its own") {
  for (const int code : {0, 1, 37, 255}) {
    auto child = Child::fork([&]() -> int { end_as(ExitStatus::exited(code)); }).value();
    CHECK(child.wait()->status == ExitStatus::exited(code));
  }
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGSEGV, SIGKILL, SIGTERM, SIGXCPU, 40}) {
    auto child = Child::fork([&]() -> int {
                   ::signal(number, SIG_IGN);
                   sigset_t all;
                   sigfillset(&all);
                   ::sigprocmask(SIG_BLOCK, &all, nullptr);
                   end_as(ExitStatus::signaled(number, true));
                 }).value();
    CHECK(child.wait()->status == ExitStatus::signaled(number, false));
  }
  // What kills nobody by default.
  auto child = Child::fork([]() -> int { end_as(ExitStatus::signaled(SIGURG)); }).value();
  CHECK(child.wait()->status == ExitStatus::exited(128 + SIGURG));
}
