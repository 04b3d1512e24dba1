#include "provisioner/service/cycle.hpp"

#include <doctest/doctest.h>

#include "lib/base/json.hpp"
#include "lib/kube/failure.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/simulate/plot.hpp"
#include "tests/condor/fake_runner.hpp"
#include "tests/provisioner/fake_demand.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

class FakeBackend : public Backend {
 public:
  Seen seen;
  std::vector<std::string> created, removed, avoids, drained, events;
  std::map<Group, GroupDemand> wanted;
  std::string refuse;  // creation fails for groups with this many CPUs
  Error refusal = error("403 Forbidden: exceeded quota");
  bool answers = true;  // else the handlers wait
  std::vector<std::function<void()>> waiting;

  void look(Time, std::function<void(Seen)> done) override { done(seen); }
  Demand fit(Demand demand, Capacity&) const override { return demand; }
  void want(const std::map<Group, GroupDemand>& groups) override { wanted = groups; }
  void create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) override {
    created.push_back(name);
    const bool bad = std::to_string(group.cpus) == refuse;
    auto call = [this, done, bad] { done(bad ? Result<void>(refusal) : Result<void>()); };
    answers ? call() : waiting.push_back(call);
  }
  void remove(const std::string& name, std::function<void(Result<void>)> done) override {
    removed.push_back(name);
    done({});
  }
  void avoid(const std::vector<std::string>& nodes) override { avoids = nodes; }
  void drain(const Draining& draining, std::function<void(Result<void>)> done) override {
    drained.push_back(fmt::format("{} {}", to_string(draining.mode), draining.pod));
    done({});
  }
  void tell(const PodEvent& event, Time) override { events.push_back(event.reason + " " + event.message); }
  const std::string& image() const override { return image_; }
  std::string slot_constraint() const override { return "MyPilots"; }
  std::string slot_pod_attribute() const override { return "PodName"; }

 private:
  std::string image_ = "img";
};

struct Scene {
  FakeDemand demand;
  FakeBackend backend;
  FakeRunner runner;
  std::string startds;
  bool startds_fail = false;
  FakeRunner::Reply accounting;
  Cycle cycle;

  explicit Scene(const HtcondorSettings& htcondor = {})
      : cycle(demand, runner, backend, htcondor, "wn", policy()) {
    runner.answer = [this](const Command& command) -> FakeRunner::Reply {
      if (command.argv[1] == "-subsystem") return accounting;
      CHECK(command.argv[2] == "(MyPilots) && (GlidepodOffline =!= true)");
      return {startds,
              startds_fail ? condor::CommandEnd(error("condor_status: exit code 1")) : condor::CommandEnd()};
    };
  }
  static Policy policy() {
    Policy p;
    p.image = "img";
    return p;
  }
  Observation observe(Time now = k_now) {
    std::optional<Observation> got;
    cycle.observe(now, [&got](Observation seen) { got = std::move(seen); });
    runner.run_all();
    REQUIRE(got);
    return std::move(*got);
  }
  Applied apply(const Plan& plan) {
    std::optional<Applied> got;
    cycle.apply(plan, k_now, [&got](Applied applied) { got = std::move(applied); });
    REQUIRE(got);
    return std::move(*got);
  }
};

}  // namespace

TEST_CASE("cycle: pods and ads come together, by the pod's name") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 40;
  for (const auto* name : {"a", "b", "c"})
    scene.backend.seen.pods.push_back({name, group(1), "img", PodState::unregistered, k_now});
  scene.startds =
      "[\n{\"PodName\": \"a\", \"State\": \"Claimed\", \"RemoteOwner\": \"alice@x\", "
      "\"AuthenticatedIdentity\": \"p\"}\n,\n"
      "{\"PodName\": \"b\", \"State\": \"Unclaimed\", \"AuthenticatedIdentity\": \"p\"}\n,\n{\"State\": "
      "1}\n,\n{,}\n]\n";
  const auto seen = scene.observe();
  const auto& pods = seen.supply.groups.at(group(1));
  CHECK(pods.claimed == 1);
  CHECK(pods.unmatched == 1);
  CHECK(pods.waiting == 1);
  CHECK(seen.supply.claimed_by_owner.at("alice") == 1);
  CHECK(seen.supply.problems.size() == 1);
  const auto plan = scene.cycle.decide(seen);
  CHECK(plan.submissions() == 9);
}

TEST_CASE("cycle: without the pods or their ads it is blind and learns nothing") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 40;
  scene.backend.seen.pods.push_back({"a", group(1), "img", PodState::unregistered, k_now});
  scene.startds = "{\"PodName\": \"a\", \"State\": \"Claimed\", \"AuthenticatedIdentity\": \"p\"}\n";
  scene.observe();
  scene.startds_fail = true;
  CHECK(scene.observe().supply.blind == "list of slots: condor_status: exit code 1");
  CHECK(scene.cycle.decide(scene.observe()).decisions.empty());
  scene.startds_fail = false;
  scene.backend.seen.blind = "lcli is down";
  CHECK(scene.cycle.decide(scene.observe()).blind == "lcli is down");
  // The pod did not vanish meanwhile.
  scene.backend.seen.blind.reset();
  CHECK(scene.observe().supply.groups.at(group(1)).used == 0);
}

TEST_CASE("cycle: quotas are the negotiator's where it is asked by offline ads, which it counts as used") {
  struct Row {
    DemandBy demand;
    double left;
  };
  for (const Row& row : {Row{DemandBy::query, 2}, Row{DemandBy::offline, -1}, Row{DemandBy::both, -1}}) {
    CAPTURE(static_cast<int>(row.demand));
    HtcondorSettings htcondor;
    htcondor.demand = row.demand;
    Scene scene(htcondor);
    scene.accounting = {
        "[\n{\"Name\": \"physics\", \"ConfigQuota\": 10, \"WeightedResourcesUsed\": 8, \"SurplusPolicy\": "
        "\"no\"}\n,\n{\"Name\": \"physics.alice@x\", \"Priority\": 7.5, \"AccountingGroup\": "
        "\"physics\"}\n]\n",
        {}};
    scene.demand.demand.groups[group(1)] = {40, 0, {{"alice", 40}}};
    const auto all = scene.observe();
    const auto& seen = all.demand.priorities;
    CHECK(scene.cycle.decide(all).submissions() == (row.left < 0 ? 11 : 1));
    CHECK((seen.quota_left.contains("physics") ? seen.quota_left.at("physics") : -1) == row.left);
    CHECK(seen.of_owner("alice") == 7.5);
  }
}

TEST_CASE("cycle: what was claimed after the negotiator's last cycle was over is among what it would use") {
  Scene scene;
  for (const auto* name : {"a", "b", "c"})
    scene.backend.seen.pods.push_back({name, group(1), "img", PodState::unregistered, k_now});
  const auto over = k_now - Seconds(30);
  const auto slot = [](const char* pod, const char* state, Time since) {
    return fmt::format(
        "{{\"PodName\": \"{}\", \"State\": \"{}\", \"EnteredCurrentState\": {}, \"AuthenticatedIdentity\": "
        "\"p\"}}",
        pod, state, since.time_since_epoch().count());
  };
  scene.startds = fmt::format("[\n{}\n,\n{}\n,\n{}\n,\n{}\n]\n", slot("a", "Claimed", over),
                              slot("b", "Claimed", over + Seconds(1)),
                              slot("c", "Unclaimed", over + Seconds(1)), slot("d", "Claimed", k_now));
  auto& jobs = scene.demand.demand.groups[group(1)];
  jobs.idle = 2;
  Offers offers;
  offers.state = Offers::State::answered;
  offers.offered = 8;
  offers.matched = 2;
  offers.queried = 8;
  offers.decides = true;
  offers.over = over;
  jobs.offers = offers;
  const auto seen = scene.observe();
  CHECK(seen.demand.groups.at(group(1)).idle == 1);
  CHECK(seen.demand.groups.at(group(1)).offers->begun == 1);
}

TEST_CASE("cycle: the pool's priorities are asked for every three minutes, and missing ones are told") {
  Scene scene;
  scene.accounting = {"[\n{\"Name\": \"alice@x\", \"Priority\": 7.5, \"AccountingGroup\": \"<none>\"}\n]\n",
                      {}};
  CHECK(scene.observe().demand.priorities.of_owner("alice") == 7.5);
  CHECK(scene.runner.commands.size() == 2);
  scene.accounting = {"", error("condor_status: communication error")};
  CHECK(scene.observe(k_now + Seconds(179)).demand.priorities.of_owner("alice") == 7.5);
  CHECK(scene.runner.commands.size() == 3);
  CHECK(scene.observe(k_now + Seconds(180)).supply.problems.size() == 1);
  auto seen = scene.observe(k_now + Seconds(600));
  CHECK(seen.demand.priorities.unknown == "accounting ads: condor_status: communication error");
  CHECK(seen.demand.priorities.of.empty());
  // Nothing else suffers from it.
  const auto plan = scene.cycle.decide(seen);
  CHECK(!plan.blind);
  CHECK(report(seen, plan, nullptr)["equal_shares"] == *plan.equal_shares);
  CHECK(table(report(seen, plan, nullptr)).value().find("equal shares, without the pool's priorities: acc") !=
        std::string::npos);
}

TEST_CASE(
    "report: jobs that no pilot meets are told by their clause, most first, and owners by their pseudonyms") {
  Observation seen;
  seen.demand.unmet = {{R"(Few == "sky")", {"pilots have no Few", 2, {{"sky", 2}}}},
                       {"", {"pilots have no Other", 1, {{"sky", 1}}}},
                       {"Many", {"pilots have no Many", 30, {}}}};
  for (int i = 0; i < 25; ++i) seen.demand.unmet["Many"].owners[fmt::format("o{:02}", i)] = 1 + i % 2;
  const auto unmet = report(seen, {}, nullptr)["unmet"];
  REQUIRE(unmet.size() == 3);
  CHECK(unmet[0]["clause"] == "Many");
  CHECK(unmet[0]["owners"].size() == 20);
  CHECK(unmet[0]["owners"]["o23"] == 2);
  CHECK(unmet[1] == nlohmann::json({{"clause", R"(Few == "sky")"},
                                    {"why", "pilots have no Few"},
                                    {"idle", 2},
                                    {"owners", {{"sky", 2}}}}));
  CHECK(unmet[2]["clause"] == "other clauses");
  CHECK(
      table(report(seen, {}, nullptr))
          .value()
          .find("no demand: 2 idle jobs require Few == \"sky\": pilots have no Few; owners {\"sky\":2}\n") !=
      std::string::npos);
  const auto hidden = report(seen, {}, nullptr, [](const std::string&) { return "x"; })["unmet"];
  CHECK(hidden[1]["clause"] == "(names an owner)");
  CHECK(hidden[1]["owners"] == nlohmann::json({{"x", 2}}));
  CHECK_FALSE(report({}, {}, nullptr).contains("unmet"));
}

TEST_CASE("cycle: pods of the groups are made in turn, with names of their own") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 8;
  scene.demand.demand.groups[group(2)].idle = 4;
  scene.demand.demand.groups[group(2)].images = {{"a:1", 4}};
  const auto applied = scene.apply(scene.cycle.decide(scene.observe()));
  CHECK(applied.created == 5);
  REQUIRE(scene.backend.wanted.size() == 1);
  CHECK(scene.backend.wanted.at(group(2)).images == std::vector<ImageDemand>{{"a:1", 4}});
  const auto name = [](int cpus, int number) {
    return fmt::format("wn-{}-f4240-{}", group(cpus).hash(), number);
  };
  CHECK(scene.backend.created ==
        std::vector<std::string>{name(1, 0), name(2, 0), name(1, 1), name(2, 1), name(1, 2)});
}

TEST_CASE("cycle: a group whose pod is refused gets no more this time, the others do") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 40;
  scene.demand.demand.groups[group(2)].idle = 40;
  scene.backend.refuse = "1";
  const auto applied = scene.apply(scene.cycle.decide(scene.observe()));
  CHECK(applied.created == 11);
  REQUIRE(applied.problems.size() == 1);
  CHECK(applied.problems[0].ends_with("-f4240-0: 403 Forbidden: exceeded quota"));
}

TEST_CASE("cycle: what takes long to make keeps nothing from its end, and is given up for the next plan") {
  Scene scene;
  SteadyTime now{};
  scene.cycle.set_clock([&now] { return now; });
  scene.cycle.create_within(Seconds(100));
  scene.demand.demand.groups[group(1)].idle = 40;
  auto plan = scene.cycle.decide(scene.observe());
  plan.removals = {{"r", "finished"}};
  plan.drainings = {{"d", "new disks", Drained::Mode::drain}};
  scene.backend.answers = false;
  std::optional<Applied> got;
  scene.cycle.apply(plan, k_now, [&got](Applied applied) { got = std::move(applied); });
  CHECK(scene.backend.removed == std::vector<std::string>{"r"});
  CHECK(scene.backend.drained == std::vector<std::string>{"drain d"});
  for (const auto later : {Seconds(99), Seconds(1)}) {
    now += later;
    const auto waiting = std::exchange(scene.backend.waiting, {});
    REQUIRE(waiting.size() == 4);
    for (const auto& call : waiting) call();
  }
  REQUIRE(got);
  CHECK(got->created == 8);
  CHECK(scene.backend.created.size() == 8);
  REQUIRE(got->problems.size() == 1);
  CHECK(got->problems[0] == "3 pods are not made, since the others took 100 s: the next cycle decides anew");
}

TEST_CASE("cycle: some actions at a time, and none after it is wound up") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 40;
  scene.backend.answers = false;
  std::optional<Applied> got;
  scene.cycle.apply(scene.cycle.decide(scene.observe()), k_now,
                    [&got](Applied applied) { got = std::move(applied); });
  CHECK(scene.backend.created.size() == 4);
  scene.cycle.wind_up();
  const auto waiting = std::exchange(scene.backend.waiting, {});
  for (const auto& call : waiting) {
    CHECK_FALSE(got);
    call();
  }
  REQUIRE(got);
  CHECK(got->created == 4);
  CHECK(scene.backend.created.size() == 4);
}

TEST_CASE("cycle: what takes long for many pods is done aside, and told when that is done") {
  Scene scene;
  std::vector<std::function<void()>> work, then;
  scene.cycle.work_aside([&](std::function<void()> first, std::function<void()> second) {
    work.push_back(std::move(first));
    then.push_back(std::move(second));
  });
  std::optional<Observation> got;
  scene.cycle.observe(k_now, [&got](Observation seen) { got = std::move(seen); });
  scene.runner.run_all();
  REQUIRE(work.size() == 1);
  CHECK_FALSE(got);
  work[0]();
  CHECK_FALSE(got);
  then[0]();
  REQUIRE(got);
  CHECK(got->at == k_now);
}

TEST_CASE("cycle: before each action it is asked whether it may still act") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 40;
  int left = 3;
  scene.cycle.act_while([&left] { return left-- > 0; });
  const auto applied = scene.apply(scene.cycle.decide(scene.observe()));
  CHECK(applied.created == 2);
  CHECK(scene.backend.created.size() == 2);
  // Nor are pilots told anything, or offers made.
  scene.backend.wanted.clear();
  scene.demand.demand.groups[group(1)].images = {{"a:1", 4}};
  CHECK(scene.apply(scene.cycle.decide(scene.observe())).created == 0);
  CHECK(scene.backend.wanted.empty());
}

TEST_CASE("cycle: what the API refuses is not asked for in each cycle, and its words are told") {
  Scene scene;
  auto& backend = scene.backend;
  for (const int cpus : {1, 2}) scene.demand.demand.groups[group(cpus)].idle = 40;
  backend.refuse = "1";
  const kube::Failure::Kind status = kube::Failure::Kind::status;
  const auto cycle = [&](int after) {
    backend.created.clear();
    const auto now = k_now + Seconds(after);
    auto plan = scene.cycle.decide(scene.observe(now));
    scene.cycle.apply(plan, now, [](const Applied&) {});
    return plan.decisions.at(0).reason();
  };
  const auto asked = [&] {
    return std::ranges::count_if(backend.created,
                                 [](const auto& name) { return name.find(group(1).hash()) != name.npos; });
  };
  // No answer may come by the next time; a refusal does not.
  backend.refusal = kube::Failure{}.to_error();
  cycle(0);
  CHECK(asked() == 1);
  backend.refusal = kube::Failure{status, 422, "Invalid", "cpu: too much", {}}.to_error();
  cycle(120);
  CHECK(asked() == 1);
  CHECK(cycle(240).find("refused: 422 Invalid: cpu: too much: asked again in 180 s") != std::string::npos);
  CHECK(asked() == 0);
  CHECK(backend.created.size() == 11);
  CHECK(cycle(420).find("one pod tries") != std::string::npos);
  CHECK(asked() == 1);
  CHECK(cycle(1'019).find("asked again in 1 s") != std::string::npos);
  backend.refuse.clear();
  cycle(1'020);
  CHECK(asked() == 1);
  CHECK(cycle(1'140).find("refused") == std::string::npos);
  // A quota has room as soon as a pod ends.
  backend.refuse = "1";
  backend.refusal = kube::Failure{status, 403, "Forbidden", "exceeded quota: q", {}}.to_error();
  cycle(1'260);
  CHECK(cycle(1'319).find("quota_refused: 403 Forbidden: exceeded quota: q") != std::string::npos);
  CHECK(asked() == 0);
  cycle(1'320);
  CHECK(asked() == 1);
}

TEST_CASE(
    "cycle: what is drained gets no pods, and those that it has are told, removed, or killed with an event") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 40;
  for (const auto* name : {"a", "b", "c"})
    scene.backend.seen.pods.push_back({name, group(1), "img", PodState::unregistered, k_now});
  auto& pods = scene.backend.seen.pods;
  pods[1].node = "n1";
  pods[2].state = PodState::pulling;
  pods[2].jobless = true;
  scene.cycle.drain({{Drained::Kind::group, group(1).hash(), Drained::Mode::drain, "new disks", k_now},
                     {Drained::Kind::node, "n1", Drained::Mode::kill, "fire", k_now}});
  const auto seen = scene.observe();
  CHECK(scene.backend.avoids == std::vector<std::string>{"n1"});
  const auto plan = scene.cycle.decide(seen);
  CHECK(plan.submissions() == 0);
  const auto applied = scene.apply(plan);
  CHECK(scene.backend.removed == std::vector<std::string>{"c"});
  CHECK(scene.backend.drained == std::vector<std::string>{"drain a", "kill b"});
  CHECK(applied.drained == 1);
  CHECK(applied.removed == 2);
  REQUIRE(scene.backend.events.size() == 2);
  CHECK(scene.backend.events[0].starts_with("Drained an operator wants its end: new disks: "));
  CHECK(scene.backend.events[1].starts_with("Killed an operator wants its end: fire: "));
  const auto text = table(report(seen, plan, &applied)).value();
  CHECK(text.find("1 to remove, 2 to drain or kill") != std::string::npos);
  CHECK(text.find("node n1: killed since ") != std::string::npos);
  // Other settings change nothing of it.
  Scene other;
  other.cycle.inherit(scene.cycle);
  other.demand.demand.groups[group(1)].idle = 40;
  CHECK(other.cycle.decide(other.observe()).submissions() == 0);
}

TEST_CASE("cycle: a negotiator without ads is believed after ten minutes") {
  Scene scene;
  scene.accounting.output = "{\n \"Name\": \"alice@pool\", \"Priority\": 500.0\n}\n";
  CHECK(scene.observe(k_now).demand.priorities.of_owner("alice") == 500);
  scene.accounting.output.clear();
  const auto soon = scene.observe(k_now + Seconds(200));
  CHECK(soon.demand.priorities.of_owner("alice") == 500);
  REQUIRE(soon.supply.problems.size() == 1);
  CHECK(soon.supply.problems[0].find("the priorities of before count") != std::string::npos);
  CHECK(scene.observe(k_now + Seconds(800)).demand.priorities.unknown);
}

TEST_CASE("cycle: a pod that ends before it is seen counts as a failure") {
  Scene scene;
  scene.demand.demand.groups[group(1)].idle = 12;
  for (int i = 0; i < 2; ++i) {
    const auto now = k_now + Seconds(60 * i);
    std::optional<Applied> got;
    scene.cycle.apply(scene.cycle.decide(scene.observe(now)), now,
                      [&got](Applied applied) { got = std::move(applied); });
    for (const auto& name : scene.backend.created)
      scene.backend.seen.pods.push_back({name, group(1), "img", PodState::failed, now});
    scene.backend.created.clear();
  }
  const auto plan = scene.cycle.decide(scene.observe(k_now + Seconds(120)));
  REQUIRE(plan.decisions.size() == 1);
  CHECK(plan.decisions[0].verdict == Decision::Verdict::stopped);
}

TEST_CASE(
    "report: of 10,000 groups, and as many pods that were refused, a status has what fits, the largest "
    "first") {
  Observation seen;
  Plan plan;
  Applied applied;
  for (int i = 0; i < 10'000; ++i) {
    Decision decision;
    decision.group = {.cpus = i + 1};
    decision.demand.idle = i;
    decision.steps = {{Rule::law, {i, 20}}, {Rule::max_pods, {20, 0}}};
    plan.decisions.push_back(decision);
    applied.problems.emplace_back(500, 'x');
    applied.unmade.push_back({decision.group, false, std::string(500, 'y')});
  }
  constexpr std::size_t k_most = 3 << 20;
  const auto status = report(seen, plan, &applied, {}, k_most);
  CHECK(json_text(status).size() < k_most + 10'000);
  CHECK(status["decisions"][0]["idle"] == 9999);
  const auto shown = status["decisions"].size();
  CHECK(status["left_out"]["decisions"] == 10'000 - shown);
  CHECK(status["left_out"]["idle"] == static_cast<std::int64_t>((10'000 - shown) * (9'999 - shown) / 2));
  CHECK(status["left_out"]["problems"] == 10'000 - status["problems"].size());
  CHECK(table(status).value().find("decisions that a status has no room for") != std::string::npos);
  // A plan has all.
  CHECK(report(seen, plan, &applied)["decisions"].size() == 10'000);
  // The text is in one line, and what else it is to say is in it once.
  const auto line = report_text(seen, plan, &applied, {}, k_most, {{"time", "noon"}, {"sleep_time", 5}});
  CHECK(line.size() <= k_most + 10'000);
  CHECK(line.find_first_of("\n\t") == std::string::npos);
  auto whole = json_from(line);
  CHECK(whole["time"] == "noon");
  CHECK(whole["sleep_time"] == 5);
  whole.erase("sleep_time");
  whole["time"] = status["time"];
  CHECK(whole == status);
}

TEST_CASE("report: what a cycle saw and did, as JSON and as a table") {
  Scene scene;
  scene.demand.demand.groups[group(1)] = {.idle = 40, .owners = {{"alice", 40}}};
  scene.demand.demand.problems = {"ap1: condor_q: no answer"};
  scene.startds = "";
  scene.accounting = {"{\"Name\": \"alice@x\", \"Priority\": 7.5}\n", {}};
  const auto seen = scene.observe();
  const auto plan = scene.cycle.decide(seen);
  const auto planned = report(seen, plan, nullptr);
  CHECK(planned["time"] == "1970-01-12T13:46:40Z");
  CHECK(planned["submit"] == 11);
  CHECK(planned["decisions"][0]["owners"]["alice"] == 40);
  CHECK(planned["decisions"][0]["steps"] ==
        nlohmann::json{{{"key", "law"}, {"text", "40 idle jobs ask for 11 waiting pods"}}});
  CHECK_FALSE(planned.contains("created"));
  const Applied applied{.created = 11, .removed = 0, .problems = {"make x: refused"}};
  const auto text = table(report(seen, plan, &applied)).value();
  CHECK(text ==
        "1970-01-12T13:46:40Z  schedds: 0 asked, 0 failed\n"
        "CPUS  MEMORY     DISK  GPUS  IDLE  WAITING  UNMATCHED  CLAIMED  BROKEN  SUBMIT  VERDICT  REASON\n"
        "   1    4096  8000000     0    40        0          0        0       0      11  submit   40 idle "
        "jobs ask for 11 "
        "waiting pods\n"
        "11 pods to make, 0 to remove; 11 made, 0 removed\n"
        "problem: ap1: condor_q: no answer\n"
        "problem: make x: refused\n");
  CHECK_FALSE(table(nlohmann::json::object()).ok());
}

TEST_CASE("plot: a line a sample, bars, and a drawing") {
  std::vector<Sample> samples(3);
  samples[1] = {
      .at = Seconds(3600), .idle = 5, .done = 1, .waiting = 1, .claimed = 2, .submitted = 3, .used_hours = 1};
  samples[2].at = Seconds(7200);
  const auto csv = to_csv(samples);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK(csv.find("\n3600,5,1,1,0,2,0,3,0,1.000,0.000,0,0\n") != std::string::npos);
  CHECK(to_table(samples, 3).find("1:00") != std::string::npos);
  CHECK(to_table(samples, 0).find("jobs done") != std::string::npos);
  const auto svg = to_svg(samples);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("nan") == std::string::npos);
}
