#include "provisioner/decide/breaker.hpp"

#include <doctest/doctest.h>

#include "tests/provisioner/decide/course_of_pods.hpp"
#include "tests/provisioner/decide/scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

TEST_CASE("breaker: three evictions do not stop a group with 60 claimed pilots, three failures do") {
  for (const auto end : {PodEnd::own, PodEnd::taken, PodEnd::refused}) {
    CAPTURE(static_cast<int>(end));
    CourseOfPods course;
    for (int i = 0; i < 60; ++i) course.claimed(fmt::format("old{}", i), fmt::format("n{}", i % 6));
    course.step();
    // They joined long ago: that they work says nothing of an image of today.
    course.now += Seconds(86400);
    for (int i = 0; i < 3; ++i) course.add(fmt::format("new{}", i), fmt::format("n{}", i));
    course.step();
    for (int i = 0; i < 3; ++i) course.ends(fmt::format("new{}", i), end);
    const auto decision = course.step().decisions.at(0);
    CHECK(decision.supply.claimed == 60);
    CHECK((decision.verdict == Decision::Verdict::stopped) == (end == PodEnd::own));
  }
}

TEST_CASE("breaker: what registered before everything broke does not keep it closed") {
  CourseOfPods course;
  for (int i = 0; i < 60; ++i) course.claimed(fmt::format("old{}", i), fmt::format("n{}", i % 6));
  course.step();
  const auto fails = [&](int from, int count) {
    course.now += Seconds(60);
    for (int i = from; i < from + count; ++i) course.add(fmt::format("new{}", i), fmt::format("m{}", i));
    course.step();
    for (int i = from; i < from + count; ++i) course.ends(fmt::format("new{}", i), PodEnd::own);
    return course.step().decisions.at(0);
  };
  CHECK(fails(0, 2).verdict != Decision::Verdict::stopped);
  const auto decision = fails(2, 1);
  CHECK(decision.verdict == Decision::Verdict::stopped);
  CHECK(text(decision.steps.back()) == "breaker opens: 3 pilots failed, 0 registered");
}

TEST_CASE("breaker: as many that register meanwhile keep it closed") {
  for (const int registered : {2, 3}) {
    CAPTURE(registered);
    CourseOfPods course;
    for (int i = 0; i < 3; ++i) {
      course.now += Seconds(60);
      course.add(fmt::format("new{}", i), fmt::format("m{}", i));
      course.step();
      course.ends(fmt::format("new{}", i), PodEnd::own);
      if (i < registered) course.claimed(fmt::format("good{}", i), "n");
      if (i == 2) break;
      course.step();
    }
    CHECK((course.step().decisions.at(0).verdict == Decision::Verdict::stopped) == (registered < 3));
  }
}

TEST_CASE("breaker: an image that cannot be had stops a group with 60 claimed pilots") {
  CourseOfPods course;
  for (int i = 0; i < 60; ++i) course.claimed(fmt::format("old{}", i), fmt::format("n{}", i % 6));
  course.step();
  course.now += Seconds(86400);
  for (int i = 0; i < 3; ++i)
    course.add(fmt::format("new{}", i), fmt::format("n{}", i), PodState::pull_error);
  CHECK(course.step().decisions.at(0).verdict == Decision::Verdict::stopped);
}

TEST_CASE("breaker: what happens at the moment of its change is of the time before") {
  const Time now{Seconds(1'000'000)};
  PolicySettings settings;
  GroupSupply supply;
  Breaker breaker{.open = true, .opened = now, .closed = {}, .next_canary = now, .pause = Seconds(60)};
  supply.registrations = {Outcome(now)};
  CHECK(consult(breaker, supply, settings, now).allowed == 1);
  CHECK(breaker.open);
  supply.registrations = {Outcome(now + Seconds(1))};
  CHECK(consult(breaker, supply, settings, now + Seconds(2)).allowed < 0);
  REQUIRE_FALSE(breaker.open);
  REQUIRE(breaker.closed == now + Seconds(2));
  supply.registrations.clear();
  supply.failures.assign(3, Outcome(now + Seconds(2)));
  CHECK(consult(breaker, supply, settings, now + Seconds(3)).allowed < 0);
  supply.failures.assign(3, Outcome(now + Seconds(3)));
  CHECK(consult(breaker, supply, settings, now + Seconds(3)).allowed == 0);
}

TEST_CASE("breaker: what the API refuses waits, longer each time, and a quota's words for a minute") {
  const Time now{Seconds(1'000'000)};
  PolicySettings settings;
  settings.breaker_first_pause = Seconds(100);
  settings.breaker_longest_pause = Seconds(300);
  History history;
  const auto note = [&](const std::optional<std::string>& words) {
    note_refusal(history, Group{}, "east", words, settings, now);
  };
  const auto says = [&](Seconds later, const std::string& place = "east") {
    const auto at = refused(history, Group{}, place, now + later);
    return at.allowed < 0 ? "all" : fmt::format("{} {}", at.allowed, text(at.why));
  };
  CHECK(says(Seconds(0)) == "all");
  for (const int pause : {100, 200, 300, 300}) {
    CAPTURE(pause);
    note("422 Invalid");
    CHECK(says(Seconds(0)) == fmt::format("0 refused: 422 Invalid: asked again in {} s", pause));
    CHECK(says(Seconds(pause - 1)) == "0 refused: 422 Invalid: asked again in 1 s");
    CHECK(says(Seconds(pause)).starts_with("1 refused: 422 Invalid"));
    CHECK(says(Seconds(0), "west") == "all");
  }
  note("403 Forbidden: exceeded quota: q");
  CHECK(history.refusals.at({Group{}, "east"}).by_quota);
  CHECK(history.refusals.at({Group{}, "east"}).until == now + Seconds(60));
  CHECK(refused(history, Group{}, "east", now).why.rule == Rule::quota_refused);
  note("422 Invalid");
  CHECK(refused(history, Group{}, "east", now).why.rule == Rule::refused);
  CHECK(history.refusals.at({Group{}, "east"}).until == now + Seconds(120));
  note(std::nullopt);
  CHECK(history.refusals.empty());
  note("422 Invalid");
  settings.breaker_failures = 0;
  note("422 Invalid");
  CHECK(history.refusals.empty());
}

TEST_CASE("breaker: a group that the API refuses gets no pod, then one, and is forgotten in the end") {
  decide_test::Scene scene;
  scene.jobs(1, 40);
  note_refusal(scene.history, group(1), {}, "422 Invalid", scene.rules(), scene.now);
  const auto until = scene.history.refusals.begin()->second.until;
  const auto none = scene.one();
  CHECK(none.submit == 0);
  CHECK(none.verdict == Decision::Verdict::stopped);
  CHECK(none.reason().find("refused: 422 Invalid") != std::string::npos);
  scene.supply.groups[group(1)].waiting = 30;
  CHECK(scene.one().verdict == Decision::Verdict::enough);
  scene.supply.groups[group(1)].waiting = 0;
  scene.now = until;
  const auto one = scene.one();
  CHECK(one.submit == 1);
  CHECK(one.verdict == Decision::Verdict::submit);
  scene.now = until + scene.rules().breaker_window;
  CHECK_FALSE(scene.plan().history.refusals.empty());
  scene.now += Seconds(1);
  CHECK(scene.plan().history.refusals.empty());
}

TEST_CASE("breaker: a plan tells which of its groups' breakers are open") {
  for (const bool open : {true, false}) {
    decide_test::Scene scene;
    scene.jobs(1, 40);
    scene.history.breakers[{group(1), "img"}] = {.open = open,
                                                 .opened = scene.now,
                                                 .closed = scene.now,
                                                 .next_canary = scene.now + Seconds(60),
                                                 .pause = {}};
    const auto plan = scene.plan();
    CHECK(plan.breaker_open(plan.decisions.at(0)) == open);
  }
  decide_test::Scene scene;
  scene.jobs(1, 40);
  const auto plan = scene.plan();
  CHECK_FALSE(plan.breaker_open(plan.decisions.at(0)));
}

TEST_CASE("breaker: one that closed is remembered for its window, and no longer for jobs that wait") {
  for (const int more : {0, 1}) {
    decide_test::Scene scene;
    scene.jobs(1, 40);
    auto& breaker = scene.history.breakers[{group(1), "img"}];
    breaker.closed = scene.now - scene.rules().breaker_window - Seconds(more);
    CHECK(scene.plan().history.breakers.size() == (more == 0 ? 1 : 0));
  }
}

TEST_CASE("breaker: without one nothing stops a group, nor what one has left behind") {
  const Time now{Seconds(1'000'000)};
  PolicySettings settings;
  settings.breaker_failures = 0;
  Breaker breaker{.open = true, .opened = now, .next_canary = now + Seconds(60)};
  GroupSupply supply;
  supply.failures.emplace_back(now);
  supply.registrations.emplace_back(now);
  CHECK(consult(breaker, supply, settings, now).allowed < 0);
  breaker = {};
  CHECK(consult(breaker, supply, settings, now).allowed < 0);
}

TEST_CASE("breaker: a pause of nothing becomes a second, then two") {
  PolicySettings settings;
  settings.breaker_longest_pause = Seconds(3);
  CHECK(next_pause(Seconds(0), settings) == Seconds(1));
  CHECK(next_pause(Seconds(1), settings) == Seconds(2));
  CHECK(next_pause(Seconds(2), settings) == Seconds(3));
}
