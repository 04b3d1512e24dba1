#include <doctest/doctest.h>

#include "provisioner/decide/places.hpp"
#include "provisioner/service/cycle.hpp"
#include "provisioner/service/metrics.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/supply/place.hpp"
#include "tests/condor/fake_runner.hpp"
#include "tests/provisioner/fake_demand.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;

namespace {

constexpr Time k_start{Seconds(1'000'000)};

// Two places that keep their pods; one may be lost, or refuse.
class FakePlaces : public Backend {
 public:
  std::map<std::string, Pod> pods;
  std::set<std::string> lost, refuses;
  Time now;

  void look(Time, std::function<void(Seen)> done) override {
    Seen seen;
    for (const auto& place : lost) seen.unseen[place] = "no answer";
    for (const auto& [name, pod] : pods)
      if (!lost.contains(std::string(place_of(name)))) seen.pods.push_back(pod);
    if (lost.size() == 2) seen.blind = "both are lost";
    done(seen);
  }
  Demand fit(Demand demand, Capacity&) const override { return demand; }
  void create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) override {
    const std::string place(place_of(name));
    if (refuses.contains(place)) return done(error("403 Forbidden: exceeded quota"));
    pods[name] = {name, group, place + "/img", PodState::unschedulable, now};
    done({});
  }
  void remove(const std::string& name, std::function<void(Result<void>)> done) override {
    pods.erase(name);
    done({});
  }
  const std::string& image() const override { return image_; }
  std::string slot_constraint() const override { return "MyPilots"; }
  std::string slot_pod_attribute() const override { return "PodName"; }
  std::vector<std::string> slot_place_attributes() const override { return {"Where"}; }
  std::string place_of_slot(const condor::Ad& slot) const override { return slot.text("Where"); }
  std::int64_t count(const std::string& place) const {
    return std::ranges::count_if(pods, [&](const auto& entry) { return place_of(entry.first) == place; });
  }

 private:
  std::string image_ = "img";
};

struct Scene {
  FakeDemand demand;
  FakePlaces backend;
  FakeRunner runner;
  std::string startds;
  Cycle cycle;
  Time now = k_start;
  Observation seen;
  Plan plan;
  Applied applied;

  Scene() : cycle(demand, runner, backend, {}, "wn", policy()) {
    demand.demand.groups[group(1)] = {.idle = 40, .owners = {{"alice", 40}}};
    runner.answer = [this](const Command& command) -> FakeRunner::Reply {
      if (command.argv[1] == "-subsystem") return {};
      CHECK(command.argv.back().find(",Where") != std::string::npos);
      return {startds, {}};
    };
  }
  static Policy policy() {
    Policy p;
    p.image = "img";
    set_places(p, {{.name = "east", .image = "east/img"}, {.name = "west", .image = "west/img"}});
    return p;
  }
  void step(Seconds later = Seconds(60)) {
    now += later;
    backend.now = now;
    cycle.observe(now, [this](Observation got) { seen = std::move(got); });
    runner.run_all();
    plan = cycle.decide(seen);
    cycle.apply(plan, now, [this](Applied got) { applied = std::move(got); });
  }
};

}  // namespace

TEST_CASE("cycle: pods of several places have their names, and slots their pods'") {
  Scene scene;
  scene.step();
  CHECK(scene.backend.count("east") == 6);
  CHECK(scene.backend.count("west") == 5);
  CHECK(scene.applied.created == 11);
  const auto name = scene.backend.pods.begin()->first;
  scene.startds = fmt::format(
      "{{\"PodName\": \"{}\", \"Where\": \"east\", \"State\": \"Claimed\", \"AuthenticatedIdentity\": "
      "\"p\"}}\n",
      without_place(name));
  scene.step();
  CHECK(scene.seen.slots.at(0).pod == name);
  CHECK(scene.seen.supply.places.at("east").groups.at(group(1)).claimed == 1);
  CHECK(scene.seen.supply.places.at("west").groups.at(group(1)).claimed == 0);
}

TEST_CASE("cycle: a place that refuses a pod gets no more this time, the other does") {
  Scene scene;
  scene.backend.refuses = {"east"};
  scene.step();
  CHECK(scene.backend.count("east") == 0);
  CHECK(scene.backend.count("west") == 5);
  REQUIRE(scene.applied.problems.size() == 1);
  CHECK(scene.applied.problems[0].starts_with("make east/wn-"));
}

TEST_CASE("cycle: a place that is lost at once after pods were made there: they count") {
  Scene scene;
  scene.step();
  scene.backend.lost = {"east"};
  for (int i = 0; i < 9; ++i) {
    scene.step();
    CHECK(scene.plan.submissions() == 0);
    CHECK(scene.plan.removals.empty());
  }
  CHECK(scene.seen.supply.problems ==
        std::vector<std::string>{"place east is not seen for 540 s: no answer"});
  // outage_shift is over: what waited there is made in the other place.
  scene.step();
  CHECK(scene.plan.submissions() == 6);
  CHECK(scene.backend.count("west") == 11);
  scene.backend.lost.clear();
  scene.step();
  CHECK(scene.plan.submissions() == 0);
  CHECK(scene.backend.pods.size() == 17);
}

TEST_CASE("cycle: what it knows of a lost place another one inherits") {
  Scene scene;
  scene.step();
  scene.backend.lost = {"east"};
  Cycle next(scene.demand, scene.runner, scene.backend, {}, "wn", Scene::policy());
  next.inherit(scene.cycle);
  std::optional<Plan> plan;
  next.observe(scene.now + Seconds(60), [&](const Observation& seen) { plan = next.decide(seen); });
  scene.runner.run_all();
  REQUIRE(plan);
  CHECK(plan->decisions.at(0).supply.waiting == 11);
  CHECK(plan->submissions() == 0);
}

TEST_CASE("cycle: one that begins while a place is lost makes nothing until outage_shift is over") {
  Scene scene;
  scene.backend.lost = {"east"};
  scene.step();
  CHECK(scene.plan.submissions() == 0);
  scene.step(Seconds(600));
  CHECK(scene.plan.submissions() == 11);
  CHECK(scene.backend.count("west") == 11);
}

TEST_CASE("report and metrics: of several places") {
  Scene scene;
  scene.step();
  scene.backend.lost = {"east"};
  scene.step();
  const auto text = report(scene.seen, scene.plan, nullptr);
  CHECK(text["places"][0] ==
        nlohmann::json(
            {{"place", "east"}, {"seen", false}, {"pods", 6}, {"unseen_for", 60}, {"why", "no answer"}}));
  CHECK(text["places"][1] == nlohmann::json({{"place", "west"}, {"seen", true}, {"pods", 5}}));
  CHECK(text["decisions"][0]["places"][1]["waiting"] == 5);
  CHECK(text["pods"][0]["place"] == "west");
  CHECK(text["pods"][0]["pod"].get<std::string>().starts_with("west/wn-"));
  CHECK(table(text)->find("problem: place east is not seen for 60 s: no answer\n") != std::string::npos);
  Metrics metrics;
  metrics.decided(scene.seen, scene.plan);
  const auto all = metrics.text();
  for (const auto* line : {"glidepod_provisioner_place_seen{place=\"east\"} 0\n",
                           "glidepod_provisioner_place_seen{place=\"west\"} 1\n",
                           "glidepod_provisioner_place_pods{place=\"east\",state=\"unschedulable\"} 6\n",
                           "glidepod_provisioner_place_submit{place=\"west\"} 0\n"}) {
    CAPTURE(line);
    CHECK(all.find(line) != std::string::npos);
  }
}
