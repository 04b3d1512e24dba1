#include "glue/launch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

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

std::string groups_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Groups:")) return line;
  return "";
}
// As HTCondor's procd does: what a child's groups are when it is first seen.
class FirstSight {
 public:
  explicit FirstSight(pid_t parent)
      : children_("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"),
        looking_([this] {
          while (!done_) look();
        }) {}
  ~FirstSight() {
    if (looking_.joinable()) (void)seen();
  }
  std::map<pid_t, std::string> seen() {
    done_ = true;
    looking_.join();
    return seen_;
  }

 private:
  void look() {
    std::ifstream children(children_);
    for (pid_t child = 0; children >> child;)
      if (!seen_.contains(child)) seen_[child] = groups_of(child);
  }
  const std::string children_;
  std::map<pid_t, std::string> seen_;
  std::atomic<bool> done_ = false;
  std::thread looking_;
};
}  // namespace

TEST_CASE("launch: the job's process is never seen without its groups" *
          doctest::skip(::geteuid() != 0 || ::getpid() != ::syscall(SYS_gettid))) {
  wire::Launch launch = sample();
  launch.argv = {"/bin/true"};
  launch.cwd = "/";
  launch.groups = {20001, 5000};
  const Filter filter = Filter::build().value();
  std::vector<Fd> stdio;
  stdio.reserve(3);
  for (int i = 0; i < 3; ++i) stdio.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<pid_t> jobs;
  jobs.reserve(300);
  FirstSight sight(::getpid());
  for (int i = 0; i < 300; ++i) {
    Pipe report = report_pipe().value();
    auto launched = start(launch, stdio, filter, report.write);
    REQUIRE(launched);
    int status = 0;
    REQUIRE(::waitpid(launched->pid, &status, 0) == launched->pid);
    REQUIRE(status == 0);
    jobs.push_back(launched->pid);
  }
  std::size_t seen = 0;
  std::size_t without = 0;
  for (const auto& [pid, groups] : sight.seen()) {
    if (std::ranges::count(jobs, pid) == 0 || groups.empty()) continue;
    ++seen;
    if (groups.find("5000") == std::string::npos) ++without;
  }
  CHECK(seen > 0);
  CHECK(without == 0);
}

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
