// What images run by themselves; test_core_run.cpp has what the core makes of it.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/image_commands.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

using CommandKind = ImageCommands::Command;

const std::string k_run_image = "reg.example/run:1";

struct Registries {
  // A request of `run` that came at this time.
  Waiting run(const std::string& image = k_run_image) const {
    Waiting waiting;
    waiting.request.client = 7;
    waiting.request.verb = wire::Verb::run;
    waiting.request.asked = Image(image);
    waiting.request.arguments = {"-v"};
    waiting.arrived = now;
    return waiting;
  }
  template <typename T>
  std::vector<T> told() {
    return taken<T>(actions);
  }

  Policy policy;
  Actions actions;
  Answers answers{actions};
  References references{"n"};
  ImageCommands commands{policy, references, answers, actions};
  Time now{1000s};
};

}  // namespace

TEST_CASE("image commands: a run asks the registry once, and has its command line by the answer") {
  Registries registries;
  Waiting waiting = registries.run();
  CHECK(registries.commands.ask(waiting, registries.now + 10s) == CommandKind::asked);
  auto asked = registries.told<AskImage>();
  REQUIRE(asked.size() == 1);
  CHECK(asked.front().client == 7);
  CHECK(asked.front().image == k_run_image);
  CHECK(asked.front().deadline == registries.now + 10s + registries.policy.pull_patience);
  CHECK(registries.commands.ask(waiting, registries.now + 500s) == CommandKind::asked);
  CHECK(registries.told<AskImage>().empty());
  CHECK(registries.commands.learn(waiting, {{"/run"}, {"default"}}));
  CHECK(waiting.argv == std::vector<std::string>{"/run", "-v"});
  CHECK(registries.commands.ask(waiting, registries.now) == CommandKind::known);
  Waiting late = registries.run();
  registries.commands.ask(late, registries.now + 590s);
  asked = registries.told<AskImage>();
  REQUIRE(asked.size() == 1);  // a name says nothing of what it means next time
  CHECK(asked.front().deadline == registries.now + registries.policy.bind_deadline);
}

TEST_CASE("image commands: nothing is asked where glue or the client knows the command") {
  Registries registries;
  Waiting waiting = registries.run();
  SUBCASE("exec") {
    waiting.request.verb = wire::Verb::exec;
  }
  SUBCASE("a probe") {
    waiting.request.any_image = true;
  }
  SUBCASE("a runscript") {
    waiting.request.runscript = true;
  }
  CHECK(registries.commands.ask(waiting, registries.now) == CommandKind::known);
  CHECK(registries.actions.take().empty());
}

TEST_CASE("image commands: an image that runs nothing fails the request, now and from memory") {
  Registries registries;
  const std::string image = "reg.example/run@sha256:" + std::string(64, 'a');
  Waiting first = registries.run(image), second = registries.run(image);
  first.request.arguments = second.request.arguments = {};
  registries.commands.ask(first, registries.now);
  CHECK_FALSE(registries.commands.learn(first, {}));
  auto failed = registries.told<Fail>();
  REQUIRE(failed.size() == 1);
  CHECK(failed.front().fault == wire::Fault::user);
  CHECK(registries.commands.ask(second, registries.now) == CommandKind::failed);
  CHECK(registries.told<Fail>().size() == 1);
}

TEST_CASE("image commands: what an image runs is known by its digest, for the last 32") {
  Registries registries;
  const auto name = [](int n) { return "reg.example/job@sha256:" + std::to_string(n); };
  const auto learn = [&](const std::string& image, const std::string& command) {
    Waiting waiting = registries.run(image);
    waiting.exact_name = image;
    CHECK(registries.commands.learn(waiting, {{command}, {}}));
  };
  const auto known = [&](const std::string& image) {
    Waiting waiting = registries.run(image);
    registries.commands.ask(waiting, registries.now);
    return waiting.argv.empty() ? std::string() : waiting.argv.front();
  };
  learn(k_run_image, "tag");
  CHECK(known(k_run_image).empty());
  for (int n = 0; n < 33; ++n) learn(name(n), std::to_string(n));
  learn(name(32), "another");
  CHECK(known(name(0)).empty());
  CHECK(known(name(1)) == "1");
  CHECK(known("mirror.example/job@sha256:32") == "32");
}
