#include "glue/processes.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "glue/pursuit.hpp"
#include "lib/base/child.hpp"

using namespace glidepod;
using namespace glidepod::glue;

namespace {
std::string line_of(const std::string& name, const std::string& state = "S") {
  return "4711 (" + name + ") " + state +
         " 42 4711 4711 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 3 0 987654321 4096 1 18446744073709551615 0 0\n";
}
}  // namespace

TEST_CASE("processes: a stat line is read whatever the program is called") {
  const ProcessStat wanted{.pid = 4711, .parent = 42, .state = 'S', .threads = 3, .start_time = 987654321};
  for (const char* name :
       {"cat", "", "a b", ") R 1 1 (", "x) S 1 (y", "two\nlines", "((", "))", "\xff\x01", "1 2 3 4"}) {
    const auto stat = parse_stat(line_of(name));
    REQUIRE(stat.has_value());
    CHECK(*stat == wanted);
  }
}

TEST_CASE("processes: what is no stat line is told") {
  for (const char* text :
       {"", "x", "1 (a", "1 a) S 2", "1 (a) S", "1 (a) S 2 3", "(a) S 1", "1 (a)", "a (a) S 1 2 3"})
    CHECK_FALSE(parse_stat(text).has_value());
}

TEST_CASE("processes: a zombie with living threads has not ended") {
  CHECK(ProcessStat{.state = 'Z', .threads = 1}.ended());
  CHECK_FALSE(ProcessStat{.state = 'Z', .threads = 2}.ended());
  CHECK_FALSE(ProcessStat{.state = 'T', .threads = 1}.ended());
}

TEST_CASE("processes: descendants are all below, nothing beside, and circles end") {
  const auto process = [](pid_t pid, pid_t parent) { return ProcessStat{.pid = pid, .parent = parent}; };
  const auto found =
      descendants_of(10, {process(1, 0), process(10, 1), process(13, 11), process(11, 10), process(12, 10),
                          process(20, 1), process(14, 13), process(30, 31), process(31, 30)});
  std::vector<pid_t> pids;
  pids.reserve(found.size());
  for (const auto& stat : found) pids.push_back(stat.pid);
  std::ranges::sort(pids);
  CHECK(pids == std::vector<pid_t>{11, 12, 13, 14});
  CHECK(descendants_of(30, {process(30, 31), process(31, 30)}).size() == 1);
  CHECK(descendants_of(5, {}).empty());
}

TEST_CASE("processes: this one is among all") {
  const auto all = all_processes();
  REQUIRE(all.ok());
  CHECK(std::ranges::count(all.value(), ::getpid(), &ProcessStat::pid) == 1);
}

// A fork bomb of a thousand processes leaves glue so little of the processor that a look takes seconds. One
// that then kills what it has found makes room for those that it has not, which are a thousand again before
// the next look.
TEST_CASE("processes: however long a look takes, several come before anything is killed") {
  auto child = Child::fork([] {
    while (true) ::pause();
    return 0;
  });
  REQUIRE(child.ok());
  const auto has_ended = [&] {
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child->pid()), &info, WEXITED | WNOHANG | WNOWAIT) == 0);
    return info.si_pid != 0;
  };
  SteadyTime now = std::chrono::steady_clock::now();
  Ending ending(now, std::chrono::hours(1));
  int steps = 0;
  while (!has_ended() && steps < 100) {
    REQUIRE(ending.step(now).has_value());
    ++steps;
    now += std::chrono::seconds(2);
    ::kill(child->pid(), SIGCONT);  // it never comes to rest
    std::this_thread::sleep_for(Milliseconds(10));
  }
  CHECK(steps >= 10);
  CHECK(steps < 100);
  CHECK(child->wait().value().status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("processes: who has nothing else to do ends all below it, or leaves them when its time is over") {
  auto all = Child::fork([] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    for (int i = 0; i < 2; ++i)
      if (::fork() == 0)
        while (true) ::pause();
    int reaped = 0;
    const auto count = [&](pid_t, int, const rusage&) { ++reaped; };
    end_descendants(Milliseconds(0), count);
    if (reaped != 0 || own_children().size() != 2) return 1;
    end_descendants(std::chrono::seconds(10), count);
    return reaped == 2 && own_children().empty() ? 0 : 2;
  });
  REQUIRE(all.ok());
  CHECK(all->wait().value().status == ExitStatus::exited(0));
}
