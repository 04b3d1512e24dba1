#include "lib/condor/command.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::condor;

namespace {

struct Ran {
  std::string output;
  std::string end = "(none)";
};

Ran run(std::vector<std::string> argv, Milliseconds limit = Milliseconds(10'000)) {
  auto loop = Loop::create().value();
  Ran ran;
  ChildRunner runner(loop);
  runner.run(
      {std::move(argv), limit}, [&](std::string_view piece) { ran.output += piece; },
      [&](const CommandEnd& end) {
        ran.end = end.ok() ? "ok" : end.error().message();
        loop.stop();
      });
  CHECK(ran.end == "(none)");
  REQUIRE(loop.run().ok());
  return ran;
}

}  // namespace

TEST_CASE("command: output and success") {
  const auto ran = run({"sh", "-c", "printf 'a b'; read x || printf ' no input'"});
  CHECK(ran.output == "a b no input");
  CHECK(ran.end == "ok");
}

TEST_CASE("command: input comes whole, however much") {
  auto loop = Loop::create().value();
  std::string output;
  ChildRunner runner(loop);
  Command command{{"wc", "-c"}};
  command.input = std::string(3'000'000, 'a');
  runner.run(
      std::move(command), [&](std::string_view piece) { output += piece; },
      [&](const CommandEnd& end) {
        CHECK(end.ok());
        loop.stop();
      });
  REQUIRE(loop.run().ok());
  CHECK(output == "3000000\n");
}

TEST_CASE("command: much output on both sides comes whole and blocks nothing") {
  const auto ran = run({"sh", "-c", "head -c 300000 /dev/zero >&2; head -c 3000000 /dev/zero"});
  CHECK(ran.output.size() == 3'000'000);
  CHECK(ran.end == "ok");
}

TEST_CASE("command: failures say the program, how it ended and its words") {
  CHECK(run({"sh", "-c", "echo 'no such schedd' >&2; exit 3"}).end == "sh: exit code 3: no such schedd");
  // What failed stands on the first line, and why below it.
  CHECK(run({"sh", "-c",
             "printf 'Error: communication error\\n  AUTHENTICATE:1003:no method\\n\\nExtra Info: a "
             "collector is\\na daemon\\n' >&2; exit 1"})
            .end == "sh: exit code 1: Error: communication error; AUTHENTICATE:1003:no method");
  CHECK(run({"sh", "-c", "printf 'no ad\\nno ad\\nthe end\\n' >&2; exit 1"}).end ==
        "sh: exit code 1: no ad; the end");
  CHECK(run({"sh", "-c", "kill -9 $$"}).end == "sh: signal 9 (KILL)");
  CHECK(run({"/nonexistent/program"}).end == "start /nonexistent/program: No such file or directory");
}

TEST_CASE("command: one that takes too long is killed") {
  CHECK(run({"sh", "-c", "exec sleep 1000"}, Milliseconds(20)).end == "sh: no answer in 20 ms");
}

TEST_CASE("command: a runner that goes takes its children along") {
  auto loop = Loop::create().value();
  bool called = false;
  {
    ChildRunner runner(loop);
    runner.run(
        {{"sleep", "1000"}, Milliseconds(100'000)}, [](std::string_view) {},
        [&](const CommandEnd&) { called = true; });
  }
  CHECK_FALSE(called);
}
