#include "provisioner/decide/nodes.hpp"

#include <doctest/doctest.h>

#include "provisioner/service/metrics.hpp"
#include "provisioner/service/report.hpp"
#include "tests/provisioner/decide/course_of_pods.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

using Verdict = Decision::Verdict;
using Names = std::vector<std::string>;

// A group with pilots at work on "good", as old as the day.
struct Scene : CourseOfPods {
  int made = 0;

  Scene() {
    for (int i = 0; i < 4; ++i) claimed(fmt::format("old{}", i), "good");
    step();
    now += Seconds(86400);
  }
  // So many pilots on this node end without ever having joined the pool.
  Plan fail_on(const std::string& node, int count, PodEnd end = PodEnd::own) {
    Names names;
    for (int i = 0; i < count; ++i) {
      names.push_back(fmt::format("p{}", made++));
      add(names.back(), node);
    }
    step();
    for (const auto& name : names) ends(name, end);
    return step();
  }
  Plan work_on(const std::string& node) {
    const auto name = fmt::format("p{}", made++);
    add(name, node);
    joins(name);
    return step();
  }
};

}  // namespace

TEST_CASE("nodes: one that breaks three pilots in a row is avoided, for a pause that doubles") {
  Scene scene;
  CHECK(scene.fail_on("bad", 2).avoid.empty());
  auto plan = scene.fail_on("bad", 1);
  CHECK(plan.avoid == Names{"bad"});
  // The image is not to blame: others of the group get their pods, only not there.
  CHECK(plan.decisions.at(0).verdict == Verdict::submit);
  CHECK(plan.decisions.at(0).reason().find("avoids bad") != std::string::npos);

  int pause = 300, next_name = 0;
  for (const int next : {600, 1200, 2400, 4800, 7200, 7200}) {
    CHECK(scene.step(Seconds(pause - 1)).avoid == Names{"bad"});
    CHECK(scene.step(Seconds(1)).avoid.empty());
    // It is tried again; the first failure is enough now.
    const auto again = fmt::format("again{}", next_name++);
    scene.add(again, "bad");
    CHECK(scene.step().avoid.empty());
    scene.ends(again);
    CHECK(scene.step().avoid == Names{"bad"});
    scene.pods.pop_back();
    pause = next;
  }
}

TEST_CASE("nodes: a pilot that works there ends it") {
  Scene scene;
  CHECK(scene.fail_on("bad", 3).avoid == Names{"bad"});
  // One that had been there already.
  CHECK(scene.work_on("bad").avoid.empty());
  CHECK(scene.history.nodes.empty());
  CHECK(scene.fail_on("bad", 2).avoid.empty());
}

TEST_CASE("nodes: one that has been left alone for long is like any other") {
  Scene scene;
  scene.fail_on("bad", 3);
  scene.step(Seconds(300 + 7201));
  CHECK(scene.history.nodes.empty());
  CHECK(scene.fail_on("bad", 2).avoid.empty());
}

TEST_CASE("nodes: a pilot that works between two failures breaks the row") {
  Scene scene;
  scene.fail_on("n", 2);
  scene.work_on("n");
  CHECK(scene.fail_on("n", 2).avoid.empty());
  CHECK(scene.fail_on("n", 1).avoid == Names{"n"});
}

TEST_CASE("nodes: where pilots work and fail at the same moment, the node is not doubted") {
  Scene scene;
  for (const auto* name : {"a", "b", "c", "works"}) scene.add(name, "n");
  scene.step();
  for (const auto* name : {"a", "b", "c"}) scene.ends(name);
  scene.joins("works");
  CHECK(scene.step().avoid.empty());
}

TEST_CASE("nodes: a pilot that had joined before its node was avoided ends nothing, also after a restart") {
  CourseOfPods course;
  course.claimed("old", "bad");
  course.pods.back().since = course.now - Seconds(1000);
  course.history.nodes["bad"] = {.since = course.now - Seconds(100),
                                 .until = course.now + Seconds(200),
                                 .pause = Seconds(300),
                                 .failed = 3};
  CHECK(course.step(Seconds(1)).avoid == Names{"bad"});
}

TEST_CASE("nodes: what a group is not to blame for") {
  const Time now{Seconds(1'000'000)};
  const std::map<std::string, NodeMemory> nodes = {{"bad", {.until = now - Seconds(50)}}};
  const auto left = [&](std::initializer_list<Outcome> failures, Time closed) {
    GroupSupply supply;
    supply.failures = failures;
    return without_nodes(supply, nodes, closed, {}).failures.size();
  };
  const Outcome in_time{now - Seconds(60), "a", "bad"}, later{now - Seconds(40), "b", "bad"},
      elsewhere{now - Seconds(90), "c", "other"};
  CHECK(left({in_time}, {}) == 0);
  CHECK(left({in_time, later}, {}) == 1);  // after its pause: nobody has avoided it yet
  CHECK(left({in_time, elsewhere}, {}) == 2);
  CHECK(left({in_time, elsewhere}, now - Seconds(80)) == 1);  // the one elsewhere has had its say
}

TEST_CASE("nodes: none is avoided of which it is not known that another one is better") {
  // Nothing works anywhere: that is the breaker's.
  CourseOfPods course;
  for (int i = 0; i < 3; ++i) course.add(fmt::format("p{}", i), "only");
  course.step();
  for (int i = 0; i < 3; ++i) course.ends(fmt::format("p{}", i));
  const auto plan = course.step();
  CHECK(plan.avoid.empty());
  CHECK(plan.decisions.at(0).verdict == Verdict::stopped);

  // Another group works elsewhere, this one does not.
  Scene scene;
  Group large;
  large.cpus = 64;
  for (int i = 0; i < 3; ++i) scene.add(fmt::format("x{}", i), "large").group = large;
  scene.step();
  for (int i = 0; i < 3; ++i) scene.ends(fmt::format("x{}", i));
  CHECK(scene.step().avoid.empty());
}

TEST_CASE("nodes: never all of them, and no more than nodes_avoided") {
  Scene scene;
  scene.claimed("also", "second");
  scene.step();
  CHECK(scene.fail_on("good", 3).avoid == Names{"good"});
  // The last one where pilots work.
  CHECK(scene.fail_on("second", 3).avoid == Names{"good"});

  Scene many;
  many.policy.settings.nodes_avoided = 2;
  for (int i = 0; i < 12; ++i) many.add(fmt::format("p{}", i), fmt::format("n{}", i % 4));
  many.step();
  for (int i = 0; i < 12; ++i) many.ends(fmt::format("p{}", i));
  CHECK(many.step().avoid == Names{"n0", "n1"});
  Scene off;
  off.policy.settings.node_failures = 0;
  CHECK(off.fail_on("bad", 9).avoid.empty());
}

TEST_CASE("nodes: what takes pods away is not their node's fault, what will not run them is") {
  CHECK(Scene().fail_on("n", 5, PodEnd::taken).avoid.empty());
  Scene scene;
  const auto plan = scene.fail_on("n", 3, PodEnd::refused);
  CHECK(plan.avoid == Names{"n"});
  CHECK(plan.decisions.at(0).verdict == Verdict::submit);
}

TEST_CASE("nodes: pilots that joined and failed without a job count, and those that give up") {
  Scene crashes;
  for (int i = 0; i < 3; ++i) {
    crashes.add(fmt::format("p{}", i), "n");
    crashes.joins(fmt::format("p{}", i));
  }
  CHECK(crashes.step().avoid.empty());
  for (int i = 0; i < 3; ++i) crashes.ends(fmt::format("p{}", i));
  auto plan = crashes.step();
  CHECK(plan.avoid == Names{"n"});
  // And are not waste of the group: its jobs are not what they lacked.
  CHECK(plan.decisions.at(0).reason().find("wasted") == std::string::npos);

  Scene idle;
  for (int i = 0; i < 3; ++i) {
    idle.add(fmt::format("p{}", i), "n");
    idle.joins(fmt::format("p{}", i));
  }
  idle.step();
  for (int i = 0; i < 3; ++i) idle.ends(fmt::format("p{}", i), PodEnd::own, PodState::succeeded);
  plan = idle.step();
  CHECK(plan.avoid.empty());
  CHECK(plan.decisions.at(0).reason().find("3 pilots wasted") != std::string::npos);

  Scene trouble;
  for (int i = 0; i < 3; ++i) {
    trouble.claimed(fmt::format("p{}", i), "n");
    trouble.slots.back().trouble = "5 failures of the infrastructure in a row";
  }
  CHECK(trouble.step().avoid == Names{"n"});
}

TEST_CASE("nodes: an image that fails on a second node, and works on none, opens the breaker") {
  Scene scene;
  CHECK(scene.fail_on("n1", 3).decisions.at(0).verdict == Verdict::submit);
  auto plan = scene.fail_on("n2", 1);
  CHECK(plan.decisions.at(0).verdict == Verdict::stopped);

  // One that has worked since is not at fault.
  Scene other;
  other.fail_on("n1", 3);
  other.work_on("n3");
  CHECK(other.fail_on("n2", 3).decisions.at(0).verdict == Verdict::submit);
  CHECK(other.step().avoid == Names{"n1", "n2"});
}

TEST_CASE("nodes: status and metrics show what is avoided") {
  Scene scene;
  const auto plan = scene.fail_on("bad", 3);
  Observation seen;
  seen.at = scene.now;
  const auto status = report(seen, plan, nullptr);
  REQUIRE(status["avoided_nodes"].size() == 1);
  CHECK(status["avoided_nodes"][0]["node"] == "bad");
  CHECK(table(status).value().find("bad: 3 pilots failed in a row\n") != std::string::npos);
  seen.at += Seconds(301);
  CHECK_FALSE(report(seen, plan, nullptr).contains("avoided_nodes"));
  Metrics metrics;
  metrics.decided(seen, plan);
  CHECK(metrics.text().find("\nglidepod_provisioner_nodes_avoided 1\n") != std::string::npos);
}

TEST_CASE(
    "nodes: one that was left alone for the longest pause is forgotten, and all where none is avoided") {
  PolicySettings settings;
  const Time now{Seconds(1'000'000)};
  const auto left = [&](Time until) {
    std::map<std::string, NodeMemory> nodes = {
        {"bad", {.since = now - Seconds(9000), .until = until, .pause = {}}}};
    judge_nodes(nodes, {}, settings, now);
    return nodes.size();
  };
  CHECK(left(now - settings.breaker_longest_pause) == 1);
  CHECK(left(now - settings.breaker_longest_pause - Seconds(1)) == 0);
  CHECK(left(now + Seconds(60)) == 1);
  settings.node_failures = 0;
  CHECK(left(now + Seconds(60)) == 0);
}

TEST_CASE("nodes: what failed at the moment of a pause's end is of the pause, later of the node") {
  PolicySettings settings;
  const Time now{Seconds(1'000'000)};
  for (const int later : {0, 1}) {
    Supply supply;
    auto& pods = supply.groups[Group{}];
    pods.at_work = {"good"};
    pods.failures = {Outcome(now - Seconds(10 - later), "p", "bad")};
    std::map<std::string, NodeMemory> nodes = {
        {"bad", {.since = now - Seconds(310), .until = now - Seconds(10), .pause = Seconds(300)}}};
    judge_nodes(nodes, supply, settings, now);
    CHECK((nodes.at("bad").until > now) == (later == 1));
    CHECK((nodes.at("bad").since == now) == (later == 1));
  }
}

TEST_CASE("nodes: what failed at the moment of a pause's end, or of a breaker's closing, is told apart") {
  const Time now{Seconds(1'000'000)};
  const std::map<std::string, NodeMemory> nodes = {
      {"bad", {.since = now - Seconds(300), .until = now, .pause = {}}}};
  GroupSupply supply;
  supply.failures = {Outcome(now, "p", "bad"), Outcome(now - Seconds(1), "q", "bad")};
  CHECK(without_nodes(supply, nodes, {}, {}).failures.size() == 1);
  // One of another node that failed before the breaker closed is no second one that fails.
  supply.failures = {Outcome(now - Seconds(1), "p", "bad"), Outcome(now - Seconds(9), "q", "other")};
  CHECK(without_nodes(supply, nodes, now - Seconds(9), {}).failures.size() == 1);
  CHECK(without_nodes(supply, nodes, now - Seconds(10), {}).failures.size() == 2);
}

TEST_CASE("nodes: a crash that is no longer among the wasted is not taken from them") {
  const Time now{Seconds(1'000'000)};
  const std::map<std::string, NodeMemory> nodes = {
      {"bad", {.since = now - Seconds(300), .until = now, .pause = {}}}};
  GroupSupply supply;
  supply.wasted = 3;
  supply.crashes = {Outcome(now - Seconds(601), "p", "bad"), Outcome(now - Seconds(600), "q", "bad"),
                    Outcome(now - Seconds(1), "r", "other")};
  CHECK(without_nodes(supply, nodes, {}, now - Seconds(600)).wasted == 2);
  CHECK(without_nodes(supply, nodes, {}, {}).wasted == 1);
  // Whatever was remembered: there are never fewer than none.
  supply.wasted = 0;
  CHECK(without_nodes(supply, nodes, {}, {}).wasted == 0);
}

TEST_CASE("nodes: pilots without a node have none to answer for them") {
  Supply supply;
  auto& pods = supply.groups[Group{}];
  const Time now{Seconds(1'000'000)};
  for (int i = 0; i < 3; ++i) pods.failures.emplace_back(now - Seconds(60 * i), fmt::format("p{}", i), "");
  pods.at_work = {"good"};
  std::map<std::string, NodeMemory> nodes;
  judge_nodes(nodes, supply, {}, now);
  CHECK(nodes.empty());
}

TEST_CASE("nodes: one that works is forgotten, which makes room for another at once") {
  Supply supply;
  auto& pods = supply.groups[Group{}];
  const Time now{Seconds(1'000'000)};
  pods.at_work = {"good"};
  PolicySettings settings;
  settings.nodes_avoided = 1;
  std::map<std::string, NodeMemory> nodes;
  nodes["a"] = {.since = now - Seconds(50), .until = now + Seconds(50), .failed = 3};
  for (int i = 0; i < 3; ++i) pods.failures.emplace_back(now - Seconds(i), fmt::format("p{}", i), "b");
  judge_nodes(nodes, supply, settings, now);
  CHECK(avoided(nodes, now) == Names{"a"});
  // Not by a pilot that had joined when it was learnt that the node is bad.
  pods.registrations.emplace_back(now - Seconds(50), "q", "a");
  judge_nodes(nodes, supply, settings, now);
  CHECK(avoided(nodes, now) == Names{"a"});
  pods.registrations.emplace_back(now - Seconds(49), "r", "a");
  judge_nodes(nodes, supply, settings, now);
  CHECK(avoided(nodes, now) == Names{"b"});
}
