#include "lib/base/child.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

using namespace glidepod;

TEST_CASE("child: exit codes and signals stay what they were") {
  for (const int code : {0, 1, 137, 255}) {
    auto child = Child::fork([code] { return code; });
    REQUIRE(child.ok());
    CHECK(child->wait().value().status == ExitStatus::exited(code));
  }
  auto child = Child::fork([] {
    ::raise(SIGKILL);
    return 0;
  });
  REQUIRE(child.ok());
  CHECK(child->wait().value().status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("child: spawn reports a program that cannot be executed") {
  CHECK(Child::spawn({.argv = {"/nonexistent/program"}}).error().message() ==
        "start /nonexistent/program: No such file or directory");
}

TEST_CASE("child: spawn unblocks signals and passes the environment") {
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &old);
  auto child = Child::spawn({.argv = {"/bin/sh", "-c", "test \"$A\" = b || exit 9; kill -TERM $$; exit 8"},
                             .environment = {"A=b", "PATH=/bin:/usr/bin"}});
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  REQUIRE(child.ok());
  CHECK(child->wait().value().status == ExitStatus::signaled(SIGTERM));
}

TEST_CASE("child: one with limits meets them") {
  auto child = Child::spawn({.argv = {"/bin/sh", "-c", "test $(ulimit -v) = 1000000"},
                             .limits = {{RLIMIT_AS, rlim_t{1'024'000'000}}}});
  REQUIRE(child.ok());
  CHECK(child->wait().value().status.success());
  child = Child::spawn({.argv = {"/bin/sh", "-c", "while :; do :; done"}, .limits = {{RLIMIT_CPU, 1}}});
  REQUIRE(child.ok());
  CHECK(child->wait().value().status.how == ExitStatus::How::signaled);
  child = Child::spawn({.argv = {"/bin/sh", "-c", "exit 3"}, .limits = {{RLIM_NLIMITS + 1, 1}}});
  REQUIRE_FALSE(child.ok());
  CHECK(child.error().code() == EINVAL);
}

TEST_CASE("child: words for a status") {
  CHECK(ExitStatus::exited(3).to_string() == "exit code 3");
  CHECK(ExitStatus::signaled(SIGSEGV, true).to_string() == "signal 11 (SEGV, core dumped)");
}

TEST_CASE("child: one that is waited for no longer is killed") {
  auto child = Child::fork([] {
    while (true) ::pause();
    return 0;
  });
  REQUIRE(child.ok());
  CHECK_FALSE(child->wait(std::chrono::milliseconds(10)).value().has_value());
  CHECK(::kill(child->pid(), 0) != 0);
  auto quick = Child::fork([] { return 3; });
  REQUIRE(quick.ok());
  CHECK(quick->wait(std::chrono::milliseconds(10'000)).value().value().status == ExitStatus::exited(3));
}
