#include "pilot-agent/supervisor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
struct Fixture {
  Loop loop = Loop::create().value();
  std::optional<ExitStatus> ended;
  Supervisor supervisor{loop, [this](ExitStatus status) {
                          ended = status;
                          loop.stop();
                        }};
};
}  // namespace

TEST_CASE("supervisor: tells how the command ended, and that it could not start") {
  Fixture f;
  spdlog::set_level(spdlog::level::off);
  REQUIRE(f.supervisor.start({"sh", "-c", "exit $CODE"}, {"CODE=3", "PATH=/bin:/usr/bin"}).ok());
  REQUIRE(f.loop.run().ok());
  CHECK(f.ended == ExitStatus::exited(3));
  CHECK_FALSE(f.supervisor.running());
  CHECK_FALSE(f.supervisor.start({"/nonexistent/command"}, {}).ok());
}

TEST_CASE("supervisor: asks first, and then insists") {
  Fixture f;
  spdlog::set_level(spdlog::level::off);
  const TemporaryFolder folder;
  const std::string fifo = folder.path + "/ready";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const Fd ready(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string script = ": >" + fifo + "; exec tail -f /dev/null";
  ExitStatus expected = ExitStatus::signaled(SIGTERM);
  SUBCASE("a command that obeys") {}
  SUBCASE("a command that does not") {
    script = "trap '' TERM; " + script;
    expected = ExitStatus::signaled(SIGQUIT);
  }
  REQUIRE(f.loop
              .watch(ready.get(), EPOLLIN,
                     [&](std::uint32_t) {
                       f.loop.forget(ready.get());
                       f.supervisor.stop(std::chrono::seconds(0));
                       f.supervisor.stop(std::chrono::seconds(0));
                     })
              .ok());
  REQUIRE(f.supervisor.start({"sh", "-c", script}, {"PATH=/bin:/usr/bin"}).ok());
  REQUIRE(f.loop.run().ok());
  REQUIRE(f.ended.has_value());
  CHECK(f.ended->how == expected.how);
  if (expected.number == SIGQUIT) CHECK(f.ended->number == SIGQUIT);
}
