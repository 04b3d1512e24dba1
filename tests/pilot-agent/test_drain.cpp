#include "pilot-agent/drain.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "pilot-agent/starter.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

// A master that writes down what it is told, with a child that has a starter, if there is one.
constexpr const char* k_master = R"sh(
trap 'echo HUP >>story' HUP
trap 'echo TERM >>story; exit 0' TERM
if [ -e condor_starter ]; then
    { ./condor_starter & echo $! >>pids; wait; } &
    echo $! >>pids
fi
while [ -e condor_starter ] && [ ! -e busy ]; do sleep 0.02; done
echo up >>story
while [ -e story ]; do sleep 0.05; done
)sh";

// A starter, until its job is refused.
constexpr const char* k_starter_script = R"sh(#!/bin/sh
: >busy
while [ -e busy ] && [ ! -e refused ]; do sleep 0.05; done
[ ! -e refused ] || echo told >>story
)sh";

struct Pilot {
  explicit Pilot(Drain::Times times = {10s, 100ms})
      : drain(
            loop, supervisor, [this](pid_t) { return has_begun; }, folder + "/config", times) {
    spdlog::set_level(spdlog::level::off);
  }
  ~Pilot() {
    std::ifstream pids(folder + "/pids");
    for (pid_t pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
    if (supervisor.running()) ::kill(supervisor.pid(), SIGKILL);
  }

  TemporaryFolder own;
  const std::string& folder = own.path;
  Loop loop = Loop::create().value();
  bool ended = false, has_begun = false;
  Supervisor supervisor{loop, [this](ExitStatus) { ended = true; }};
  Drain drain;

  std::string story() const {
    const auto text = read_file(folder + "/story", 4096);
    return text ? text.value() : "";
  }
  void start(std::size_t starters) {
    if (starters > 0) {
      std::ofstream(folder + "/condor_starter") << k_starter_script;
      std::filesystem::permissions(folder + "/condor_starter", std::filesystem::perms::owner_all);
    }
    REQUIRE(supervisor.start({"sh", "-c", "cd " + folder + "; " + k_master}, {"PATH=/bin:/usr/bin"}).ok());
    run_until([this] { return story() == "up\n"; });
    CHECK(starters_of(supervisor.pid()).size() == starters);
  }
  void run_until(const std::function<bool()>& done) {
    const auto limit = Loop::now() + 20s;
    while (!done() && Loop::now() < limit) REQUIRE(loop.run_once(20ms).ok());
    REQUIRE(done());
  }
  void end_within(std::chrono::seconds grace) {
    drain.begin(grace);
    drain.begin(0s);  // changes nothing
    run_until([this] { return ended; });
  }
};

}  // namespace

TEST_CASE("drain: a command without a starter, or whose jobs have all begun, is told to end at once") {
  Pilot pilot;
  SUBCASE("no starter") {
    pilot.start(0);
  }
  SUBCASE("one whose job has begun") {
    pilot.has_begun = true;
    pilot.start(1);
  }
  pilot.end_within(30s);
  CHECK(pilot.story() == "up\nTERM\n");
  CHECK_FALSE(std::filesystem::exists(pilot.folder + "/config"));
}

TEST_CASE("drain: a starter whose job is refused says so before the command is told to end") {
  Pilot pilot;
  pilot.start(1);
  std::ofstream(pilot.folder + "/refused") << "";
  pilot.end_within(30s);
  CHECK(pilot.story().find("HUP\n") != std::string::npos);
  CHECK(pilot.story().find("told\n") != std::string::npos);
  CHECK(pilot.story().ends_with("\nTERM\n"));
  CHECK(read_file(pilot.folder + "/config", 4096).value() == "START = False\n");
}

TEST_CASE("drain: a starter that stays is waited for, but not for long") {
  Drain::Times times{500ms, 100ms};
  std::chrono::seconds grace = 30s;
  SUBCASE("by the clock") {}
  SUBCASE("by what the pod has left") {
    times.say = 10s;
    grace = 1s;
  }
  Pilot pilot(times);
  pilot.start(1);
  const auto begun = Loop::now();
  pilot.end_within(grace);
  CHECK(Loop::now() - begun >= 400ms);
  CHECK(Loop::now() - begun < 5s);
  CHECK(pilot.story() == "up\nHUP\nTERM\n");
}

TEST_CASE("drain: a pilot is free when no starter is left, or without its command") {
  Pilot pilot;
  bool free = false;
  SUBCASE("no command") {}
  SUBCASE("no starter") {
    pilot.start(0);
  }
  SUBCASE("a starter that ends") {
    pilot.has_begun = true;
    pilot.start(1);
    pilot.drain.when_free([&free] { free = true; });
    for (int i = 0; i < 10; ++i) REQUIRE(pilot.loop.run_once(20ms).ok());
    CHECK_FALSE(free);
    std::ofstream(pilot.folder + "/refused") << "";
  }
  pilot.drain.when_free([&free] { free = true; });
  pilot.run_until([&free] { return free; });
  CHECK(pilot.story().find("TERM") == std::string::npos);
}
