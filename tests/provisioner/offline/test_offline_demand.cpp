#include "provisioner/offline/offline_demand.hpp"

#include <doctest/doctest.h>

#include "lib/base/text.hpp"
#include "lib/condor/job_ad.hpp"
#include "tests/condor/fake_runner.hpp"
#include "tests/provisioner/fake_demand.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;
using State = Offers::State;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

// A pool with a collector, whose ads are JSON, and a negotiator.
struct Scene {
  FakeDemand query;
  FakeRunner runner;
  std::map<std::string, std::string> slots;  // by name
  std::string offers, fails;
  std::int64_t cycle = 1'000'060;
  std::vector<Command> advertised;
  HtcondorSettings htcondor;
  OfflineDemand::Settings settings{"MyPilots"};
  std::unique_ptr<OfflineDemand> source;

  Scene() {
    settings.offering = Offering::decides;
    query.demand.groups[group(1)].idle = 40;
    pilot("slot1@old", 100);
    runner.answer = [this](const Command& command) -> FakeRunner::Reply {
      const auto& question = command.argv.size() > 2 ? command.argv[2] : command.argv[0];
      if (command.argv[0] == "condor_advertise") {
        advertised.push_back(command);
        return {"", fails == "advertise" ? error("condor_advertise: DENIED") : condor::CommandEnd()};
      }
      if (command.argv[1] == "-subsystem")
        return {fails == "cycles" ? "" : fmt::format("[\n{{\"LastUpdate\": {}}}\n]\n", cycle),
                fails == "accounting" ? error("condor_status: down") : condor::CommandEnd()};
      if (question.find("GlidepodOffline =?= true") != std::string::npos)
        return {"[\n" + offers + "]\n",
                fails == "offers" ? error("condor_status: down") : condor::CommandEnd()};
      std::string list;
      for (const auto& [name, ad] : slots)
        if (question.find("MyPilots") != std::string::npos || question == "Name == " + condor::quote(name))
          list += (list.empty() ? "" : ",\n") + ad + "\n";
      return {"[\n" + list + "]\n", {}};
    };
  }
  void pilot(const std::string& name, int started, const std::string& more = "") {
    slots[name] = fmt::format(
        R"({{"Name": "{}", "DaemonStartTime": {}, "AuthenticatedIdentity": "pilot@x", "Arch": "{}"{}}})",
        name, started, name, more);
  }
  void offer(int number, int heard, int matched) {
    offers += fmt::format(
        "{}{{\"GlidepodOfflineGroup\": \"{}\", \"GlidepodOfflineNumber\": {}, "
        "\"LastHeardFrom\": {}, \"MachineLastMatchTime\": {}}}\n",
        offers.empty() ? "" : ",\n", group(1).hash(), number, heard, matched);
  }
  Demand fetch() {
    if (!source) source = std::make_unique<OfflineDemand>(query, runner, htcondor, settings);
    std::optional<Demand> got;
    source->fetch([&got](Demand demand) { got = std::move(demand); });
    runner.run_all();
    REQUIRE(got);
    return std::move(*got);
  }
  // The ads that follow.
  std::string follow_up() {
    advertised.clear();
    source->follow_up(k_now);
    runner.run_all();
    return advertised.empty() ? "" : advertised[0].input;
  }
  bool knows(const std::string& problem) {
    for (const auto& told : fetch().problems)
      if (told.find(problem) != std::string::npos) return true;
    return false;
  }
};

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t result = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++result;
  return result;
}

}  // namespace

TEST_CASE(
    "offline demand: pods are offered by ads, and once a cycle has seen them it counts what was matched") {
  Scene scene;
  CHECK(scene.fetch().groups.at(group(1)).offers->state == State::asked);
  const auto ads = scene.follow_up();
  CHECK(scene.advertised[0].argv ==
        std::vector<std::string>{"condor_advertise", "-multiple", "UPDATE_STARTD_AD", "-"});
  CHECK(count(ads, "GlidepodOffline = true\n") == 20);
  CHECK(count(ads, "arch = \"slot1@old\"\n") == 20);
  for (int number = 0; number < 20; ++number) scene.offer(number, 1'000'000, number < 10 ? 1'000'061 : 0);
  const auto jobs = scene.fetch().groups.at(group(1));
  CHECK(jobs.idle == 10);
  CHECK(jobs.offers->queried == 40);
  // They are there: nothing follows.
  CHECK(scene.follow_up().empty());
}

TEST_CASE("offline demand: without a pilot there is nothing to offer") {
  Scene scene;
  scene.slots.clear();
  const auto jobs = scene.fetch().groups.at(group(1));
  CHECK(jobs.offers->state == State::no_pilot);
  CHECK(jobs.idle == 1);
  CHECK(scene.follow_up().empty());
}

TEST_CASE("offline demand: the newest pilot is copied, of those that may be pilots") {
  Scene scene;
  scene.settings.startd_identity_regexp = "pilot@x";
  scene.pilot("slot1@new", 200);
  scene.pilot("slot1@gpus", 300, R"(, "TotalSlotGPUs": 1)");
  scene.slots["slot1@forged"] =
      R"({"Name": "slot1@forged", "DaemonStartTime": 900, "AuthenticatedIdentity": "eve@x"})";
  scene.fetch();
  CHECK(count(scene.follow_up(), "arch = \"slot1@new\"\n") == 20);
  // Only newer ones are asked for from then on, of either kind.
  scene.runner.commands.clear();
  scene.fetch();
  CHECK(scene.runner.commands[1][2].find("ifThenElse((TotalSlotGPUs > 0) =?= true, 300, 200)") !=
        std::string::npos);
  CHECK(scene.runner.commands[1][2].find("HasSingularity =?= true") != std::string::npos);
}

TEST_CASE("offline demand: a copy does where its pilot has gone, and the pilot itself else") {
  Scene scene;
  scene.slots.clear();
  scene.pilot("offline@copy", 200, R"(, "GlidepodOffline": true)");
  scene.fetch();
  CHECK(count(scene.follow_up(), "arch = \"offline@copy\"\n") == 20);
  Scene both;
  both.pilot("slot1@old", 200);
  both.pilot("offline@copy", 200, R"(, "GlidepodOffline": true)");
  both.fetch();
  CHECK(count(both.follow_up(), "arch = \"slot1@old\"\n") == 20);
}

TEST_CASE("offline demand: where the pool does not answer it is blind, or tells it") {
  for (const auto* what : {"offers", "accounting"}) {
    Scene scene;
    scene.fails = what;
    CHECK(scene.fetch().blind->find("down") != std::string::npos);
    CHECK(scene.follow_up().empty());
    Scene beside;
    beside.settings.offering = Offering::told;
    beside.fails = what;
    CHECK_FALSE(beside.fetch().blind);
    CHECK(beside.knows("condor_status: down"));
    CHECK(beside.fetch().groups.at(group(1)).idle == 40);
  }
}

TEST_CASE("offline demand: ads that the collector refuses are told, and nothing is decided") {
  Scene scene;
  scene.fails = "advertise";
  scene.fetch();
  CHECK_FALSE(scene.follow_up().empty());
  CHECK(scene.knows(
      "offline ads: the collector does not take them (ADVERTISE_STARTD): condor_advertise: DENIED"));
  CHECK(scene.fetch().groups.at(group(1)).offers->state == State::asked);
  scene.fails.clear();
  scene.follow_up();
  CHECK_FALSE(scene.knows("DENIED"));
}

TEST_CASE("offline demand: a pool that tells of no cycle is told of") {
  Scene scene;
  scene.fails = "cycles";
  scene.offer(0, 1'000'000, 0);
  CHECK(scene.knows("NEGOTIATOR_ADVERTISE_ACCOUNTING"));
  CHECK(scene.fetch().groups.at(group(1)).offers->state == State::asked);
}

TEST_CASE("offline demand: what the query does not know stays so") {
  Scene scene;
  scene.query.demand = {};
  scene.query.demand.blind = "no schedd answered";
  CHECK(scene.fetch().blind == "no schedd answered");
  CHECK(scene.follow_up().empty());
}

TEST_CASE("offline demand: a cycle that ends between two questions has matched what it matched") {
  Scene scene;
  const auto matched_at = [&scene](int time) {
    scene.offers.clear();
    for (int number = 0; number < 20; ++number) scene.offer(number, 1'000'000, number < 10 ? time : 0);
  };
  matched_at(1'000'061);
  scene.runner.answer = [&, answer = scene.runner.answer](const Command& command) {
    auto reply = answer(command);
    if (command.argv[0] == "condor_status" && scene.cycle == 1'000'060) {
      scene.cycle = 1'000'120;
      matched_at(1'000'121);
    }
    return reply;
  };
  CHECK(scene.fetch().groups.at(group(1)).offers->matched == 10);
}
