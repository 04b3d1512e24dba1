#include "glue/session.hpp"

#include <doctest/doctest.h>

#include <cerrno>

using namespace glidepod;
using namespace glidepod::glue;

namespace {
wire::OpenSession sample() {
  wire::OpenSession message;
  message.job = 1;
  message.session = 2;
  return message;
}
}  // namespace

TEST_CASE("session: descriptors come with the message, or a terminal is made") {
  CHECK(check_session(sample(), 3));
  for (const std::size_t fds : {0U, 1U, 2U, 4U}) CHECK_FALSE(check_session(sample(), fds));
  auto terminal = sample();
  terminal.request.terminal = true;
  CHECK(check_session(terminal, 0));
  CHECK_FALSE(check_session(terminal, 3));
}

TEST_CASE("session: what execve could not take is refused") {
  auto message = sample();
  message.session = 0;
  CHECK_FALSE(check_session(message, 3));
  message = sample();
  message.request.command = std::string("a\0b", 3);
  CHECK_FALSE(check_session(message, 3));
  message = sample();
  message.request.environment = {std::string("A=\0", 3)};
  CHECK_FALSE(check_session(message, 3));
}

TEST_CASE("session: it is the job's launch, and nothing of how the job itself was started") {
  wire::Launch job;
  job.argv = {"runscript", "a"};
  job.runscript = job.program_attached = true;
  job.launched_marker = "/x";
  job.uid = 7;
  const auto launch = launch_of_session(job, {.command = "ls"});
  CHECK(launch.argv == std::vector<std::string>{"/bin/sh", "-c", "ls"});
  CHECK(launch.uid == 7);
  CHECK_FALSE((launch.runscript || launch.program_attached || !launch.launched_marker.empty()));
}

TEST_CASE("session: its variables take the place of the job's") {
  CHECK(replace_variables({"TERM=dumb", "A=1", "TERMX=2"}, {"TERM=xterm", "B=3"}) ==
        std::vector<std::string>{"A=1", "TERMX=2", "TERM=xterm", "B=3"});
}

TEST_CASE("session: an image without a shell is told so, other failures are as a job's") {
  OpenedSession session;
  session.launch.argv = {"/bin/sh"};
  session.launch.cwd = "/glidepod/scratch/dir_1";
  session.candidates = {"/bin/sh"};
  const auto missing = explain_session({.step = Step::program, .code = ENOENT}, session, "/glidepod/scratch");
  CHECK(fault_of(missing) == wire::Fault::user);
  CHECK(missing.message().find("has no shell (/bin/sh)") != std::string::npos);
  const auto broken =
      explain_session({.step = Step::program, .code = ENOENT, .candidate = 0}, session, "/glidepod/scratch");
  CHECK(broken.message().find("is the loader of its C library") != std::string::npos);
  const auto passing = explain_session({.step = Step::filter, .code = ENOMEM}, session, "/glidepod/scratch");
  CHECK(fault_of(passing) == wire::Fault::infrastructure);
}
