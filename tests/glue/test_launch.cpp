#include "glue/launch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
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
// As HTCondor's procd does: what a child's groups are when it is first seen. A process of its own, as glue
// has no threads: its child may be born while a thread holds the allocator's lock.
class FirstSight {
 public:
  explicit FirstSight(std::string_view group) : said_(report_pipe().value()) {
    const pid_t parent = ::getpid();
    looking_ = ::fork();
    if (looking_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto children = fmt::format("/proc/{0}/task/{0}/children", parent);
    for (std::set<pid_t> seen; ::getppid() == parent;) {
      std::ifstream list(children);
      for (pid_t child = 0; list >> child;) {
        if (!seen.insert(child).second) continue;
        const auto groups = groups_of(child);
        if (groups.empty()) continue;
        const auto line = fmt::format("{} {}\n", child, groups.find(group) != std::string::npos ? 1 : 0);
        if (::write(said_.write.get(), line.data(), line.size()) < 0) break;
      }
    }
    ::_exit(0);
  }
  ~FirstSight() { end(); }
  // Whether each had the group.
  std::map<pid_t, bool> seen() {
    end();
    std::string text(65536, '\0');
    const ssize_t got = ::read(said_.read.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::istringstream lines(text);
    std::map<pid_t, bool> result;
    bool had = false;
    for (pid_t pid = 0; lines >> pid >> had;) result[pid] = had;
    return result;
  }

 private:
  void end() {
    if (looking_ <= 0) return;
    ::kill(looking_, SIGKILL);
    ::waitpid(looking_, nullptr, 0);
    looking_ = -1;
  }
  Pipe said_;
  pid_t looking_ = -1;
};
}  // namespace

TEST_CASE("launch: the job's process is never seen without its groups" * doctest::skip(::geteuid() != 0)) {
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
  FirstSight sight("5000");
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
  for (const auto& [pid, had] : sight.seen()) {
    if (std::ranges::count(jobs, pid) == 0) continue;
    ++seen;
    if (!had) ++without;
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
    const auto failure = explain({step, EPERM, -1, {}}, sample(), {}, k_scratch);
    CHECK(fault_of(failure) == wire::Fault::infrastructure);
    CHECK(failure.message().starts_with("cannot launch the job: "));
    CHECK(failure.message().ends_with(": Operation not permitted"));
  }
}

TEST_CASE("launch: a program's failure is the user's unless it may pass") {
  const auto failure = [](int code, int candidate) {
    return explain({Step::program, code, candidate, {}}, sample(), {"/bin/tool", "/opt/tool"}, k_scratch);
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
  CHECK(fault_of(explain({Step::directory, ENOENT, -1, {}}, launch, {}, k_scratch)) == wire::Fault::user);
  launch.links = {{"/srv", "/glidepod/scratch/dir_1"}};
  CHECK(fault_of(explain({Step::directory, ENOENT, -1, {}}, launch, {}, k_scratch)) ==
        wire::Fault::infrastructure);
}

TEST_CASE(
    "launch: what the agent has not judged, glue does: streams are below the shared volume, or nowhere") {
  std::vector<Fd> streams;
  streams.reserve(3);
  for (int i = 0; i < 3; ++i) streams.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(check_streams(streams, k_scratch).ok());
  for (const char* door : {"/", "/etc/passwd", "/dev/zero", "/proc/self/status"}) {
    CAPTURE(door);
    streams[1].reset(::open(door, O_RDONLY | O_CLOEXEC));
    const auto judged = check_streams(streams, k_scratch);
    REQUIRE_FALSE(judged.ok());
    CHECK(fault_of(judged.error()) == wire::Fault::user);
    CHECK(judged.error().message().find("standard output") != std::string::npos);
  }
}
