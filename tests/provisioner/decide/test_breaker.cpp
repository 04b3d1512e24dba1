#include "provisioner/decide/breaker.hpp"

#include <doctest/doctest.h>

#include "tests/provisioner/decide/course_of_pods.hpp"

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
