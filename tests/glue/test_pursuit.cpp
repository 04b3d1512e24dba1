// Which processes are stopped and killed, when, and which are left alone: glue's pursuit.cpp among processes
// that this file makes up. The linker takes them in the place of processes.cpp.
#include "glue/pursuit.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

using namespace glidepod;
using namespace glidepod::glue;

namespace {

using Sent = std::vector<std::pair<pid_t, int>>;  // signals, in order

struct Scene {
  std::vector<ProcessStat> processes;
  std::vector<pid_t> children;
  std::set<pid_t> gone;      // between the list and the signal
  std::set<pid_t> escaping;  // between its descriptor and the signal
  Sent sent;                 // by descriptor
  Sent sent_to_children;     // by pid
  std::vector<Children> reapings;
  std::vector<std::pair<Milliseconds, bool>> waits;  // each with whether SIGCHLD alone ends it
  std::optional<Milliseconds> now;                   // what the clock shows; nothing: the kernel's
  std::map<int, pid_t> open;
};
Scene scene;

ProcessStat process(pid_t pid, char state, std::uint64_t start = 1) {
  return {.pid = pid, .parent = 1, .state = state, .threads = 1, .start_time = start};
}

SteadyTime at(std::int64_t ms) {
  return SteadyTime(Milliseconds(1'000'000 + ms));
}

Sent taken() {
  return std::exchange(scene.sent, {});
}

}  // namespace

namespace glidepod::glue {

std::vector<ProcessStat> own_descendants() {
  return scene.processes;
}

std::vector<pid_t> own_children() {
  return scene.children;
}

void signal_child(pid_t pid, int number) {
  scene.sent_to_children.emplace_back(pid, number);
}

Fd open_process(const ProcessStat& stat) {
  if (scene.gone.contains(stat.pid)) return {};
  Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  scene.open[fd.get()] = stat.pid;
  return fd;
}

bool send_signal(const Fd& fd, int number) {
  if (!fd || scene.escaping.contains(scene.open[fd.get()])) return false;
  scene.sent.emplace_back(scene.open[fd.get()], number);
  return true;
}

Children reap(std::size_t most, const Reaped&) {
  CHECK(most == k_reaped_at_once);
  REQUIRE_FALSE(scene.reapings.empty());
  const auto result = scene.reapings.front();
  scene.reapings.erase(scene.reapings.begin());
  return result;
}

}  // namespace glidepod::glue

// Time that passes only in waits.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (clock != CLOCK_MONOTONIC || !scene.now)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  *now = {.tv_sec = scene.now->count() / 1000, .tv_nsec = scene.now->count() % 1000 * 1'000'000};
  return 0;
}

extern "C" int sigtimedwait(const sigset_t* set, siginfo_t*, const timespec* time) {
  const Milliseconds wait(time->tv_sec * 1000 + time->tv_nsec / 1'000'000);
  int others = 0;
  for (int number = 1; number < SIGRTMAX; ++number)
    others += number != SIGCHLD && ::sigismember(set, number) == 1;
  scene.waits.emplace_back(wait, others == 0 && ::sigismember(set, SIGCHLD) == 1);
  if (scene.now) *scene.now += wait;
  return -1;
}

TEST_CASE("pursuit: a signal comes to each process once, and to what is born later") {
  scene = {.processes = {process(10, 'S'), process(11, 'T'), process(12, 'Z')}};
  Pursuit pursuit(SIGTERM);
  CHECK_FALSE(pursuit.pass());
  CHECK(pursuit.found_new());
  CHECK(taken() == Sent{{10, SIGTERM}, {11, SIGTERM}});
  CHECK(pursuit.pass());
  CHECK_FALSE(pursuit.found_new());
  CHECK(taken() == Sent{});
  CHECK(pursuit.passes() == 2);
  SUBCASE("a new one, whatever is known beside it") {
    scene.processes.insert(scene.processes.begin(), process(13, 'R'));
    CHECK_FALSE(pursuit.pass());
    CHECK(pursuit.found_new());
    CHECK(taken() == Sent{{13, SIGTERM}});
  }
  SUBCASE("one that has the pid of an earlier one") {
    scene.processes[0] = process(10, 'S', 2);
    CHECK_FALSE(pursuit.pass());
    CHECK(taken() == Sent{{10, SIGTERM}});
  }
  SUBCASE("one that has ended before its turn") {
    scene.processes.push_back(process(13, 'R'));
    scene.gone = {13};
    CHECK_FALSE(pursuit.pass());
    CHECK(taken() == Sent{});
  }
}

TEST_CASE("pursuit: what is to stop is told again until it has, but for what the kernel holds") {
  scene = {.processes = {process(10, 'S'), process(11, 'R'), process(12, 'D')}};
  Pursuit pursuit(SIGSTOP);
  CHECK_FALSE(pursuit.pass());
  CHECK(taken() == Sent{{10, SIGSTOP}, {11, SIGSTOP}, {12, SIGSTOP}});
  CHECK_FALSE(pursuit.pass());
  CHECK_FALSE(pursuit.found_new());
  CHECK(taken() == Sent{{10, SIGSTOP}, {11, SIGSTOP}});
  scene.processes[0].state = 'T';
  CHECK_FALSE(pursuit.pass());
  CHECK(taken() == Sent{{11, SIGSTOP}});
  scene.processes[1].state = 'T';
  CHECK(pursuit.pass());
  CHECK(taken() == Sent{});
}

TEST_CASE("ending: all are stopped, then killed, and glue's children are hunted until the next round") {
  scene = {.processes = {process(10, 'S'), process(11, 'S')}, .children = {10}};
  Ending ending(at(0), std::chrono::minutes(1));
  CHECK(ending.step(at(0)) == Milliseconds(0));
  CHECK(taken() == Sent{{10, SIGSTOP}, {11, SIGSTOP}});
  CHECK(scene.sent_to_children.empty());
  scene.processes = {process(10, 'T'), process(11, 'T')};
  CHECK(ending.step(at(1)) == Milliseconds(0));
  CHECK(taken() == Sent{{10, SIGKILL}, {11, SIGKILL}});
  CHECK(std::exchange(scene.sent_to_children, {}) == Sent{{10, SIGKILL}});
  CHECK(ending.killed() == 2);
  CHECK(ending.step(at(2)) == Milliseconds(20));
  scene.children = {10, 11};  // an orphan comes to glue
  CHECK(ending.step(at(200)) == Milliseconds(0));
  CHECK(std::exchange(scene.sent_to_children, {}) == Sent{{10, SIGKILL}, {10, SIGKILL}, {11, SIGKILL}});
  CHECK(taken() == Sent{});
  SUBCASE("the next round begins 200 ms after the last kill, and hunts anew") {
    CHECK(ending.step(at(201)) == Milliseconds(0));
    CHECK(taken() == Sent{{10, SIGSTOP}, {11, SIGSTOP}});
    CHECK(scene.sent_to_children.empty());
    CHECK(ending.step(at(202)) == Milliseconds(0));
    CHECK(taken() == Sent{{10, SIGKILL}, {11, SIGKILL}});
    CHECK(ending.step(at(203)) == Milliseconds(20));
  }
}

TEST_CASE("ending: it is over when its time is") {
  scene = {.processes = {process(10, 'S')}};
  Ending ending(at(0), Milliseconds(50));
  CHECK(ending.step(at(49)).has_value());
  CHECK_FALSE(ending.step(at(50)).has_value());
  CHECK(taken() == Sent{{10, SIGSTOP}});
}

namespace {

// When the first process is killed, by steps so far apart; before each of them this changes the scene.
std::int64_t killed_at(Ending& ending, std::int64_t from, std::int64_t apart,
                       const std::function<void(std::int64_t)>& change) {
  taken();
  for (std::int64_t ms = from; ms < from + 5'000; ms += apart) {
    change(ms);
    REQUIRE(ending.step(at(ms)).has_value());
    if (std::ranges::count(taken(), SIGKILL, [](const auto& one) { return one.second; }) > 0) return ms;
  }
  return -1;
}

}  // namespace

TEST_CASE("ending: what does not come to rest is killed all the same") {
  scene = {.processes = {process(10, 'R')}};
  Ending ending(at(0), std::chrono::hours(1));
  SUBCASE("200 ms after the last new process") {
    CHECK(killed_at(ending, 0, 10, [](std::int64_t) {}) == 200);
  }
  SUBCASE("a new one begins that anew") {
    CHECK(killed_at(ending, 0, 10, [](std::int64_t ms) {
            if (ms == 100) scene.processes.push_back(process(11, 'R'));
          }) == 300);
  }
  SUBCASE("a second after the first look, however many are born") {
    const auto born = [](std::int64_t ms) {
      scene.processes.push_back(process(static_cast<pid_t>(100 + ms), 'R'));
    };
    CHECK(killed_at(ending, 0, 10, born) == 1000);
    // So does each round.
    CHECK(killed_at(ending, 1200, 10, born) == 2200);
  }
  SUBCASE("and not before ten looks, if looks are slow") {
    CHECK(killed_at(ending, 0, 300, [](std::int64_t) {}) == 2700);
  }
}

TEST_CASE("ending: what was killed is counted once, whoever reaps it") {
  scene = {.processes = {process(10, 'T'), process(11, 'Z'), process(12, 'T'), process(13, 'T'),
                         process(14, 'T')}};
  scene.gone = {13};
  scene.escaping = {14};
  Ending ending(at(0), std::chrono::minutes(1), 12);
  ending.step(at(0));
  ending.step(at(1));
  REQUIRE(taken() == Sent{{10, SIGSTOP}, {12, SIGSTOP}, {10, SIGKILL}, {11, SIGKILL}, {12, SIGKILL}});
  CHECK(ending.killed() == 1);
  SUBCASE("one that is still there in the next round") {
    ending.step(at(201));
    ending.step(at(202));
    CHECK(taken().back() == std::pair(12, SIGKILL));
    CHECK(ending.killed() == 1);
  }
  SUBCASE("one that is reaped, and its pid's next process") {
    ending.reaped(10, SIGKILL);
    CHECK(ending.killed() == 1);
    scene.processes[0].start_time = 2;
    ending.step(at(201));
    ending.step(at(202));
    CHECK(ending.killed() == 2);
  }
  SUBCASE("one that was killed as a child, and none that ended otherwise") {
    ending.reaped(20, SIGKILL);
    CHECK(ending.killed() == 2);
    ending.reaped(21, SIGTERM);
    ending.reaped(22, 9 << 8);
    CHECK(ending.killed() == 2);
  }
}

TEST_CASE("ending: who has nothing else to do waits for its children between steps") {
  const auto ignore = [](pid_t, int, const rusage&) {};
  const auto wait = [](std::int64_t ms) { return std::pair(Milliseconds(ms), true); };
  scene = {.processes = {process(10, 'T')}, .children = {10}, .now = Milliseconds(1'000'000)};
  SUBCASE("until it has none") {
    scene.reapings = {Children::living, Children::unknown, Children::living, Children::none};
    end_descendants(std::chrono::hours(1), ignore);
    CHECK(scene.waits == std::vector{wait(0), wait(0), wait(20)});
    CHECK(scene.reapings.empty());
  }
  SUBCASE("until its time is over") {
    scene.reapings.assign(10, Children::living);
    end_descendants(Milliseconds(50), ignore);
    CHECK(scene.waits == std::vector{wait(0), wait(0), wait(20), wait(20), wait(20)});
    CHECK(scene.reapings.size() == 4);
  }
  scene.now.reset();
}
