#include "provisioner/decide/decide.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "provisioner/decide/breaker.hpp"
#include "tests/provisioner/decide/scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::decide_test;
using Verdict = Decision::Verdict;

TEST_CASE("decide: PRP's law, number by number") {
  static constexpr std::int64_t table[][2] = {{1, 1},    {3, 1},    {4, 2},     {8, 3},         {76, 20},
                                              {79, 20},  {80, 20},  {92, 21},   {96, 21},       {100, 21},
                                              {156, 25}, {400, 40}, {1000, 77}, {100'000, 6265}};
  for (const auto& row : table) {
    const auto idle = row[0], wanted = row[1];
    CAPTURE(idle);
    CHECK(pressure(idle, 1'000'000) == wanted);
    CHECK(pressure(idle, 20) == std::min<std::int64_t>(wanted, 20));
  }
}

TEST_CASE("decide: what waits is taken off, what is claimed is not") {
  struct Row {
    std::int64_t idle, waiting, unmatched, claimed, submit;
    Verdict verdict;
  };
  static constexpr Row rows[] = {
      {40, 0, 0, 0, 11, Verdict::submit},     {40, 3, 2, 100, 6, Verdict::submit},
      {40, 11, 0, 0, 0, Verdict::enough},     {40, 30, 0, 0, 0, Verdict::enough},
      {1000, 0, 0, 0, 20, Verdict::submit},   {1000, 0, 0, 999, 20, Verdict::submit},
      {1000, 0, 0, 1000, 0, Verdict::enough}, {0, 5, 0, 0, 0, Verdict::no_demand},
  };
  for (const auto& row : rows) {
    CAPTURE(row.idle);
    CAPTURE(row.claimed);
    Scene scene;
    if (row.idle > 0) scene.jobs(1, row.idle);
    scene.pods(1, row.waiting, row.unmatched, row.claimed);
    const auto got = scene.one();
    CHECK(got.submit == row.submit);
    CHECK(got.verdict == row.verdict);
  }
}

TEST_CASE("decide: every decision says why") {
  Scene scene;
  scene.jobs(1, 40);
  scene.pods(1, 3, 2, 1);
  scene.rules().ramp_up_per_group = 4;
  CHECK(scene.one().reason() ==
        "40 idle jobs ask for 11 waiting pods; 5 wait already; ramp_up_per_group: 6 -> 4");
}

TEST_CASE("decide: blind on either side decides nothing and remembers") {
  for (const bool jobs : {true, false}) {
    Scene scene;
    scene.jobs(1, 40);
    scene.supply.ended = {{"old", false, Time{}, 100}};
    scene.history.cycle = 7;
    (jobs ? scene.demand.blind : scene.supply.blind) = "no collector";
    const auto plan = scene.plan();
    CHECK(plan.blind == "no collector");
    CHECK(plan.decisions.empty());
    CHECK(plan.removals.empty());
    CHECK(plan.history.cycle == 7);
  }
}

TEST_CASE("decide: curbs and caps of a group") {
  struct Row {
    std::int64_t PolicySettings::*rule;
    std::int64_t value, submit;
  };
  // 40 idle, 2 waiting, 1 unmatched, 5 claimed, 2 broken: the law says 8.
  static constexpr Row rows[] = {
      {&PolicySettings::ramp_up_per_group, 3, 3},
      {&PolicySettings::ramp_up_per_group, 100, 8},
      {&PolicySettings::max_idle_per_group, 5, 2},
      {&PolicySettings::max_idle_per_group, 3, 0},
      {&PolicySettings::max_running_per_group, 12, 4},
      {&PolicySettings::max_running_per_group, 1, 0},
      {&PolicySettings::max_pods_per_group, 12, 2},
      {&PolicySettings::ramp_up, 3, 3},
      {&PolicySettings::max_idle, 5, 2},
      {&PolicySettings::max_running, 12, 4},
      {&PolicySettings::max_pods, 12, 2},
      {&PolicySettings::max_pods, 10, 0},
      {&PolicySettings::max_cores, 12, 2},
      {&PolicySettings::max_cores, 10, 0},
  };
  for (const auto& row : rows) {
    CAPTURE(row.value);
    Scene scene;
    scene.jobs(1, 40);
    scene.pods(1, 2, 1, 5).broken = 2;
    scene.rules().*row.rule = row.value;
    const auto got = scene.one();
    CHECK(got.submit == row.submit);
    CHECK(got.verdict == (row.submit > 0 ? Verdict::submit : Verdict::limited));
  }
}

TEST_CASE("decide: a shared limit is shared, and another group comes first each time") {
  Scene scene;
  for (int cpus = 1; cpus <= 4; ++cpus) scene.jobs(cpus, 1000);
  scene.rules().max_pods = 10;
  const auto submits = [&] {
    std::vector<std::int64_t> result;
    for (const auto& d : scene.plan().decisions) result.push_back(d.submit);
    return result;
  };
  CHECK(submits() == std::vector<std::int64_t>{3, 3, 2, 2});
  CHECK(submits() == std::vector<std::int64_t>{2, 3, 3, 2});
  scene.rules().max_pods = 2;
  CHECK(submits() == std::vector<std::int64_t>{0, 0, 1, 1});
}

namespace {
std::int64_t submitted(const Plan& plan, std::int64_t from, std::int64_t to) {  // for groups of so many CPUs
  std::int64_t sum = 0;
  for (const auto& decision : plan.decisions)
    if (decision.group.cpus >= from && decision.group.cpus <= to) sum += decision.submit;
  return sum;
}
}  // namespace

TEST_CASE("decide: a shared limit goes by owner, however many groups one has") {
  Scene scene;
  for (int i = 0; i < 500; ++i) scene.jobs(100 + i, 1, "alice");
  scene.jobs(1, 1000, "bob");
  scene.jobs(2, 2, "carol");
  scene.policy.max_pods_per_cluster = 50;
  scene.rules().max_idle = 61;
  const auto plan = scene.plan();
  CHECK(submitted(plan, 2, 2) == 1);  // all that she asks for
  CHECK(submitted(plan, 1, 1) == 30);
  CHECK(submitted(plan, 100, 600) == 30);
}

TEST_CASE("decide: what an owner has already counts in the share") {
  Scene scene;
  scene.jobs(1, 400, "alice");
  scene.jobs(2, 400, "bob");
  scene.policy.max_pods_per_cluster = 100;
  scene.rules().ramp_up = 20;
  SUBCASE("pods with a job") {
    scene.supply.claimed_by_owner["alice"] = 14;
    const auto plan = scene.plan();
    CHECK(submitted(plan, 1, 1) == 3);
    CHECK(submitted(plan, 2, 2) == 17);
  }
  SUBCASE("pods that wait") {
    scene.pods(1, 14, 0, 0);
    const auto plan = scene.plan();
    CHECK(submitted(plan, 1, 1) == 3);
    CHECK(submitted(plan, 2, 2) == 17);
  }
  SUBCASE("those of a group of both, by their jobs") {
    scene.jobs(3, 3, "alice");
    scene.jobs(3, 1, "bob");
    scene.pods(3, 8, 0, 0);
    const auto plan = scene.plan();
    CHECK(submitted(plan, 1, 1) == 8);
    CHECK(submitted(plan, 2, 2) == 12);
  }
}

TEST_CASE("decide: twenty owners with equal demand have equal shares, in groups of any number") {
  Scene scene;
  std::map<std::int64_t, std::string> owner_of;
  for (int owner = 0; owner < 20; ++owner)
    for (int i = 0; i <= owner * 3; ++i) {
      const std::int64_t cpus = 100 * owner + i + 1;
      owner_of[cpus] = fmt::format("user{}", owner);
      scene.jobs(cpus, 600 / (owner * 3 + 1), owner_of[cpus]);
    }
  scene.rules().ramp_up = 107;
  std::map<std::string, double> got;
  for (int cycle = 0; cycle < 3; ++cycle)
    for (const auto& decision : scene.plan().decisions) {
      got[owner_of[decision.group.cpus]] += static_cast<double>(decision.submit);
      scene.pods(decision.group.cpus, decision.supply.waiting + decision.submit, 0, 0);
    }
  double sum = 0, squares = 0;
  for (const auto& [owner, pods] : got) {
    sum += pods;
    squares += pods * pods;
  }
  CHECK(sum == 321);
  const double jain = sum * sum / (20 * squares);
  CHECK_MESSAGE(jain > 0.99, jain);
}

TEST_CASE("decide: pods that no node has had room for in long use up nobody's limit") {
  Scene scene;
  auto& stuck = scene.pods(64, 50, 0, 0);
  stuck.unschedulable = 50;
  stuck.unschedulable_since = scene.now - Seconds(601);
  scene.jobs(64, 50, "alice");
  scene.jobs(1, 4, "bob");
  scene.rules().max_idle = 50;
  scene.rules().max_pods = 50;
  CHECK(submitted(scene.plan(), 1, 1) == 2);
  stuck.unschedulable_since = scene.now;  // they may get a node yet
  CHECK(submitted(scene.plan(), 1, 1) == 0);
}

TEST_CASE("decide: of a group that also has jobs, such pods use up max_idle for itself alone") {
  Scene scene;
  auto& stuck = scene.pods(64, 50, 0, 1);
  stuck.unschedulable = 50;
  stuck.unschedulable_since = scene.now - Seconds(601);
  for (int i = 0; i < 50; ++i)
    scene.supply.jobless.push_back(
        {std::to_string(i), group(64), PodState::unschedulable, scene.now - Seconds(601)});
  scene.jobs(64, 5000, "alice");
  scene.jobs(1, 4, "bob");
  scene.policy.max_pods_per_cluster = 1000;
  scene.rules().max_idle = 50;
  CHECK(submitted(scene.plan(), 1, 1) == 2);
  CHECK(submitted(scene.plan(), 64, 1) == 0);
  for (auto& pod : scene.supply.jobless) pod.state = PodState::gated;
  CHECK(submitted(scene.plan(), 1, 1) == 2);
  for (auto& pod : scene.supply.jobless) pod.since = scene.now - Seconds(600);
  CHECK(submitted(scene.plan(), 1, 1) == 0);
  for (auto& pod : scene.supply.jobless) {
    pod.since = scene.now - Seconds(601);
    pod.state = PodState::unschedulable;
  }
  // Those that get a node, or go, are not stuck; nor is anything without the limit.
  SUBCASE("a node comes") {
    for (auto& pod : scene.supply.jobless) pod.node_comes = true;
  }
  SUBCASE("made otherwise now") {
    for (auto& pod : scene.supply.jobless) pod.outdated = true;
  }
  SUBCASE("drained") {
    for (auto& pod : scene.supply.jobless) pod.drained = "for repair";
  }
  SUBCASE("the image") {
    for (auto& pod : scene.supply.jobless) pod.state = PodState::pulling;
  }
  SUBCASE("no limit") {
    scene.rules().unschedulable_limit = Seconds(0);
  }
  CHECK(submitted(scene.plan(), 1, 1) == 0);
}

TEST_CASE("decide: one owner's jobs count up to the cap, over all groups") {
  Scene scene;
  scene.jobs(1, 100, "alice");
  scene.jobs(2, 100, "alice");
  scene.jobs(2, 8, "bob");
  scene.supply.claimed_by_owner["alice"] = 4;
  scene.rules().max_pods_per_owner = 10;
  const auto plan = scene.plan();
  CHECK(plan.decisions[0].counted == 6);
  CHECK(plan.decisions[0].submit == 2);
  CHECK(plan.decisions[1].counted == 8);
  CHECK(text(plan.decisions[0].steps[0]) == "max_pods_per_owner 10: 6 of 100 idle jobs count");
  scene.supply.claimed_by_owner["alice"] = 40;
  CHECK(scene.plan().decisions[0].submit == 0);
}

TEST_CASE("decide: jobs to come count beside the idle ones") {
  Scene scene;
  scene.jobs(1, 4).unmaterialized = 12;
  CHECK(scene.one().submit == 5);
}

TEST_CASE("decide: jobs that no pod could run are told, not provisioned for") {
  const Resources need{.cpu_milli = 8000, .memory_bytes = 100, .disk_bytes = 0, .gpus = 0};
  const auto verdict = [&](const Capacity& capacity) {
    Scene scene;
    scene.jobs(1, 40);
    scene.capacity = capacity;
    scene.capacity.needs[group(1)] = need;
    const auto got = scene.one();
    CHECK((got.verdict == Verdict::unservable) == (got.submit == 0));
    return got.verdict == Verdict::unservable ? got.reason() : "";
  };
  const Resources small{.cpu_milli = 4000, .memory_bytes = 1000, .disk_bytes = 0, .gpus = 0, .pods = 110};
  const Resources large{.cpu_milli = 16000, .memory_bytes = 1000, .disk_bytes = 0, .gpus = 0, .pods = 110};
  CHECK(verdict({}).empty());
  CHECK(verdict({.nodes = {small}}) == "larger than every node");
  CHECK(verdict({.nodes = {small, large}}).empty());
  CHECK(verdict({.quota = small}) == "larger than the quota");
  CHECK(verdict({.quota = large}).empty());
  CHECK(verdict({.unservable = {{group(1), "no shape holds it"}}}) == "no shape holds it");
}

TEST_CASE("decide: what is left of the quota bounds the pods") {
  Scene scene;
  scene.jobs(1, 40);
  scene.jobs(2, 40);
  scene.capacity.needs[group(1)] = {.cpu_milli = 1000};
  scene.capacity.needs[group(2)] = {.cpu_milli = 2000};
  scene.capacity.quota_left = Resources{.cpu_milli = 7000, .pods = 100};
  const auto plan = scene.plan();
  CHECK(plan.decisions[0].submit == 3);
  CHECK(plan.decisions[1].submit == 2);
  CHECK(text(plan.decisions[1].steps.back()) == "quota: 11 -> 2");
}

TEST_CASE("decide: wasted pilots lower the pressure, never below one") {
  struct Row {
    int jobs;
    std::int64_t wasted, used, claimed, without, target;
  };
  // One of many leaves a small target as it is.
  static constexpr Row rows[] = {{40, 0, 0, 0, 11, 11},  {40, 1, 0, 0, 11, 6},  {40, 10, 0, 0, 11, 1},
                                 {40, 100, 0, 0, 11, 1}, {40, 10, 9, 0, 11, 6}, {40, 10, 0, 90, 11, 10},
                                 {4, 1, 9, 0, 2, 2},     {4, 1, 0, 0, 2, 1}};
  for (const auto& row : rows) {
    CAPTURE(row.wasted);
    Scene scene;
    scene.jobs(1, row.jobs);
    auto& pods = scene.pods(1, 0, 0, row.claimed);
    pods.wasted = row.wasted;
    pods.used = row.used;
    CHECK(scene.one().target == row.target);
    scene.rules().waste_feedback = false;
    CHECK(scene.one().target == row.without);
  }
}

TEST_CASE("decide: the breaker opens, tries with one pod at a time, and closes") {
  Scene scene;
  scene.jobs(1, 40);
  auto& pods = scene.pods(1, 0, 0, 0);
  pods.broken = 2;
  pods.failures = {k_now - Seconds(20), k_now - Seconds(10)};
  CHECK(scene.one().verdict == Verdict::submit);
  pods.failures.push_back(k_now);
  auto got = scene.one();
  CHECK(got.verdict == Verdict::stopped);
  CHECK(got.submit == 0);
  CHECK(text(got.steps.back()) == "breaker opens: 3 pilots failed, 0 registered");

  scene.now += Seconds(299);
  CHECK(text(scene.one().steps.back()) == "breaker open for 5 min: next try in 1 s");
  scene.now += Seconds(1);
  got = scene.one();
  CHECK(got.verdict == Verdict::canary);
  CHECK(got.submit == 1);

  // While that one waits there is no other, and after it the pause is doubled.
  pods.waiting = 1;
  scene.now += Seconds(10'000);
  CHECK(scene.one().submit == 0);
  pods.waiting = 0;
  CHECK(scene.one().verdict == Verdict::canary);
  scene.now += Seconds(1199);
  CHECK(scene.one().verdict == Verdict::stopped);
  scene.now += Seconds(1);
  CHECK(scene.one().verdict == Verdict::canary);

  // It registers: the failures of before are forgotten.
  pods.registrations = {scene.now + Seconds(50)};
  scene.now += Seconds(60);
  CHECK(scene.one().verdict == Verdict::submit);
  CHECK(scene.one().verdict == Verdict::submit);
  for (int i = 0; i < 3; ++i) pods.failures.push_back(scene.now + Seconds(1 + i));
  scene.now += Seconds(60);
  CHECK(scene.one().verdict == Verdict::stopped);
}

TEST_CASE("decide: the pause of the breaker has a longest") {
  Scene scene;
  scene.jobs(1, 40);
  scene.pods(1, 0, 0, 0).failures = {k_now, k_now, k_now};
  CHECK(scene.one().verdict == Verdict::stopped);
  for (int i = 0; i < 20; ++i) {
    scene.now += Seconds(7200);
    CHECK(scene.one().verdict == Verdict::canary);
    CHECK(scene.one().verdict == Verdict::stopped);
  }
}

TEST_CASE("decide: some failures among many registrations stop nothing") {
  Scene scene;
  scene.jobs(1, 40);
  auto& pods = scene.pods(1, 0, 0, 50);
  pods.failures.assign(5, k_now);
  pods.registrations.assign(5, k_now);
  CHECK(scene.one().verdict == Verdict::submit);
  pods.registrations.assign(5, k_now - Seconds(1));
  CHECK(scene.one().verdict == Verdict::stopped);
  // What registered before says nothing of the image any more.
  scene.now += Seconds(1);
  CHECK(scene.one().verdict == Verdict::stopped);
  // It is the latest failures that count.
  scene.history = {};
  pods.failures.insert(pods.failures.begin(), 3, k_now - Seconds(2));
  CHECK(scene.one().verdict == Verdict::stopped);
}

TEST_CASE("decide: the breaker knows the image: another one starts afresh") {
  Scene scene;
  scene.jobs(1, 40);
  scene.pods(1, 0, 0, 0).failures = {k_now, k_now, k_now};
  CHECK(scene.one().verdict == Verdict::stopped);
  scene.policy.image = "fixed";
  scene.supply.groups.begin()->second.failures.clear();
  CHECK(scene.one().verdict == Verdict::submit);
}

TEST_CASE("decide: without the breaker pods that fail wait like any other, as with PRP") {
  Scene scene;
  scene.jobs(1, 40);
  scene.rules().breaker_failures = 0;
  auto& pods = scene.pods(1, 0, 0, 0);
  pods.broken = 9;
  pods.failures.assign(9, k_now);
  CHECK(scene.one().submit == 2);
}

TEST_CASE("decide: a breaker that nobody needs is forgotten") {
  Scene scene;
  scene.jobs(1, 40);
  scene.pods(1, 0, 0, 0).failures = {k_now, k_now, k_now};
  scene.one();
  CHECK(scene.history.breakers.size() == 1);
  scene.demand.groups.clear();
  scene.supply.groups.clear();
  scene.now += Seconds(3600);
  scene.plan();
  CHECK(scene.history.breakers.size() == 1);
  scene.now += Seconds(86400);
  scene.plan();
  CHECK(scene.history.breakers.empty());
}

TEST_CASE("decide: a quota that takes nothing away has no say where an owner's cap has") {
  Scene scene;
  scene.jobs(1, 40);
  scene.rules().max_pods_per_owner = 8;
  scene.demand.priorities.group_of["alice"] = "group_physics";
  scene.demand.priorities.quota_left["group_physics"] = 100;
  CHECK(scene.one().reason().find("max_pods_per_owner") != std::string::npos);
  scene.demand.priorities.quota_left["group_physics"] = 3;
  CHECK(scene.one().reason().find("group_physics") != std::string::npos);
}

TEST_CASE("decide: only what has a say is said") {
  Scene scene;
  scene.jobs(1, 40);
  SUBCASE("a limit that leaves all") {
    scene.rules().ramp_up_per_group = 11;
  }
  SUBCASE("one wasted among very many") {
    scene.supply.groups[group(1)].wasted = 1;
    scene.supply.groups[group(1)].used = 1000;
  }
  CHECK(scene.one().reason() == "40 idle jobs ask for 11 waiting pods");
}

TEST_CASE("decide: where one pod is wanted there is nothing to lower, and nothing is raised") {
  Scene scene;
  scene.jobs(1, 1);
  auto& pods = scene.pods(1, 1, 0, 0);
  pods.unschedulable = 1;
  pods.unschedulable_since = scene.now - Seconds(10'000);
  CHECK(scene.one().reason() == "1 idle jobs ask for 1 waiting pods; 1 wait already");
  // None counts.
  pods = {};
  pods.wasted = 10;
  scene.demand.priorities.group_of["alice"] = "physics";
  scene.demand.priorities.quota_left["physics"] = 0;
  CHECK(scene.one().target == 0);
}

TEST_CASE("decide: a group that is full says so") {
  Scene scene;
  scene.jobs(1, 40);
  scene.pods(1, 0, 0, 7);
  scene.policy.max_submit_pods_per_cluster = 7;
  CHECK(scene.one().reason().find("max_submit_pods_per_cluster 7: has 7") != std::string::npos);
}

TEST_CASE("decide: nodes and quota say nothing of a group of which nobody knows what a pod needs") {
  Capacity capacity;
  capacity.nodes = {{.cpu_milli = 1}};
  capacity.quota = Resources{.cpu_milli = 1};
  CHECK_FALSE(why_unservable(group(1), capacity).has_value());
}

TEST_CASE("decide: where enough pods are there nothing is stopped, and nothing tries") {
  Scene scene;
  scene.jobs(1, 40);
  scene.pods(1, 0, 20, 0);
  SUBCASE("by the breaker") {
    auto& breaker = scene.history.breakers[{group(1), "img"}];
    breaker = {.open = true, .opened = scene.now - Seconds(100), .next_canary = scene.now + Seconds(50)};
    SUBCASE("which waits") {}
    SUBCASE("which would try") {
      breaker.next_canary = scene.now;
    }
  }
  SUBCASE("by the API") {
    note_refusal(scene.history, group(1), {}, "422 Invalid", scene.rules(), scene.now);
    scene.now = scene.history.refusals.begin()->second.until;
  }
  const auto got = scene.one();
  CHECK(got.submit == 0);
  CHECK(got.verdict == Verdict::enough);
}

TEST_CASE("decide: what was before the breaker closed is not held against other nodes") {
  Scene scene;
  scene.jobs(1, 40);
  const auto closed = scene.now - Seconds(1000);
  scene.history.breakers[{group(1), "img"}].closed = closed;
  scene.history.nodes["n1"] = {.since = scene.now, .until = scene.now + Seconds(50), .failed = 3};
  auto& pods = scene.pods(1, 0, 0, 0);
  pods.failures.emplace_back(closed - Seconds(10), "old", "n2");
  for (int i = 0; i < 3; ++i) pods.failures.emplace_back(closed + Seconds(10), fmt::format("p{}", i), "n1");
  CHECK(scene.one().verdict == Verdict::submit);
}
