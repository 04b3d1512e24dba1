#include "glue/launch.hpp"

#include <doctest/doctest.h>

#include <cerrno>

using namespace glidepod;
using namespace glidepod::glue;

namespace {
wire::Launch sample() {
  wire::Launch launch;
  launch.job = 1;
  launch.argv = {"tool"};
  launch.cwd = "/glidepod/scratch/dir_1";
  launch.uid = launch.gid = 20001;
  return launch;
}
constexpr const char* k_scratch = "/glidepod/scratch";
}  // namespace

TEST_CASE("launch: one that makes sense is not refused, one descriptor off is") {
  auto launch = sample();
  CHECK(check_launch(launch, 3).ok());
  CHECK_FALSE(check_launch(launch, 4).ok());
  launch.program_attached = true;
  CHECK(check_launch(launch, 4).ok());
  CHECK_FALSE(check_launch(launch, 3).ok());
}

TEST_CASE("launch: limits must be limits") {
  auto launch = sample();
  launch.limits = {{4, 0, ~0ULL}};
  CHECK(check_launch(launch, 3).ok());
  for (const wire::Limit limit : {wire::Limit{-1, 0, 0}, wire::Limit{16, 0, 0}, wire::Limit{4, 2, 1}}) {
    launch.limits = {limit};
    CHECK_FALSE(check_launch(launch, 3).ok());
  }
}

TEST_CASE("launch: a failed step before the program is the infrastructure's") {
  for (const Step step :
       {Step::session, Step::user, Step::capabilities, Step::filter, Step::limits, Step::marker}) {
    const auto failure = explain({step, EPERM, -1}, sample(), {}, k_scratch);
    CHECK(fault_of(failure) == wire::Fault::infrastructure);
    CHECK(failure.message().starts_with("cannot launch the job: "));
    CHECK(failure.message().ends_with(": Operation not permitted"));
  }
}

TEST_CASE("launch: a program's failure is the user's unless it may pass") {
  const auto failure = [](int code, int candidate) {
    return explain({Step::program, code, candidate}, sample(), {"/bin/tool", "/opt/tool"}, k_scratch);
  };
  for (const int code : {ENOENT, EACCES, ENOEXEC, E2BIG, ELOOP, EPERM})
    CHECK(fault_of(failure(code, 0)) == wire::Fault::user);
  for (const int code : {EAGAIN, ENOMEM, EIO, ETXTBSY})
    CHECK(fault_of(failure(code, 0)) == wire::Fault::infrastructure);
  CHECK(failure(ENOENT, -1).message().starts_with("cannot execute tool in any folder of PATH: No such file"));
  CHECK(failure(EACCES, 1).message().starts_with("cannot execute /opt/tool: Permission denied"));
  CHECK(failure(EACCES, 99).message().starts_with("cannot execute tool"));
}

TEST_CASE("launch: a folder behind a link of ours is the infrastructure's") {
  auto launch = sample();
  launch.cwd = "/srv/sub";
  CHECK(fault_of(explain({Step::directory, ENOENT, -1}, launch, {}, k_scratch)) == wire::Fault::user);
  launch.links = {{"/srv", "/glidepod/scratch/dir_1"}};
  CHECK(fault_of(explain({Step::directory, ENOENT, -1}, launch, {}, k_scratch)) ==
        wire::Fault::infrastructure);
}
