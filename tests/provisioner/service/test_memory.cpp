#include "provisioner/service/memory.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "provisioner/service/lease.hpp"
#include "tests/provisioner/decide/course_of_pods.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using Verdict = Decision::Verdict;

namespace {

// Another process goes on.
void change_leader(CourseOfPods& course) {
  const auto text = json_text(memory_json(course.tracker, course.history, course.now));
  auto recalled = read_memory(json_from(text), course.policy.settings, course.now);
  REQUIRE(recalled.ok());
  course.tracker = Tracker(std::move(recalled->fates));
  course.history = std::move(recalled->history);
}

// The same course of events, with a change of leader before each cycle or with none.
std::vector<std::string> story(bool changes) {
  CourseOfPods course;
  std::vector<std::string> told;
  const auto step = [&](int seconds, bool may_change = true) {
    if (changes && may_change) change_leader(course);
    const auto plan = course.step(Seconds(seconds));
    told.push_back(fmt::format("{}; avoid {}; wasted {}", plan.decisions.at(0).reason(),
                               fmt::join(plan.avoid, ","), plan.decisions.at(0).supply.wasted));
  };
  for (int i = 0; i < 60; ++i) course.claimed(fmt::format("old{}", i), fmt::format("n{}", i % 6));
  step(60);
  step(86400);
  for (int i = 0; i < 3; ++i) course.add(fmt::format("bad{}", i), "n0");
  step(60);
  // Of what ends while nobody leads nobody knows how it fared.
  for (int i = 0; i < 3; ++i) course.ends(fmt::format("bad{}", i));
  step(60, false);
  // Now the image breaks, everywhere; these pods stay for a while.
  for (int i = 0; i < 4; ++i)
    course.add(fmt::format("late{}", i), fmt::format("n{}", i), PodState::pull_error);
  for (const int pause : {60, 60, 300, 60, 600, 60}) step(pause);
  course.pods.resize(60);
  course.add("canary", "n5");
  step(60);
  course.joins("canary");
  for (const int pause : {60, 60, 1800}) step(pause);
  return told;
}

}  // namespace

TEST_CASE("memory: a change of leader before each cycle changes no decision") {
  const auto one = story(false), many = story(true);
  REQUIRE(one.size() == many.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CAPTURE(i);
    CHECK(one[i] == many[i]);
  }
}

TEST_CASE("memory: the pilots that are there already do not close a breaker") {
  CourseOfPods course;
  for (int i = 0; i < 60; ++i) course.claimed(fmt::format("old{}", i), fmt::format("n{}", i % 6));
  course.step();
  course.now += Seconds(86400);
  for (int i = 0; i < 3; ++i) course.add(fmt::format("p{}", i), fmt::format("n{}", i), PodState::pull_error);
  CHECK(course.step().decisions.at(0).verdict == Verdict::stopped);
  change_leader(course);
  CHECK(course.step().decisions.at(0).verdict == Verdict::stopped);
}

TEST_CASE("memory: a pilot of which nobody knows whether it had a job is no waste") {
  CourseOfPods course;
  course.add("p", "n");
  course.joins("p");
  course.step();
  change_leader(course);
  course.step();
  course.ends("p", PodEnd::own, PodState::succeeded);
  CHECK(course.step().decisions.at(0).supply.wasted == 0);
}

TEST_CASE("memory: what is malformed is an error, whatever is wrong with it") {
  CourseOfPods course;
  for (int i = 0; i < 3; ++i) course.add(fmt::format("p{}", i), "n", PodState::pull_error);
  course.step();
  const auto good = memory_json(course.tracker, course.history, course.now);
  const auto read = [&](const Json& memory) {
    return read_memory(memory, course.policy.settings, course.now);
  };
  REQUIRE(read(good).ok());
  for (const auto& bad : {Json(), Json(5), Json("x"), Json::array(), Json::object(), json_from("{")})
    CHECK_FALSE(read(bad).ok());
  for (const auto& item : good.items()) {
    const std::string& key = item.key();
    CAPTURE(key);
    auto wrong = good;
    wrong[key] = Json::array({Json::array({"x"})});
    CHECK((key == "time" || !read(wrong).ok()));
  }
  auto wrong = good;
  wrong["failures"][0][0] = 99;
  CHECK_FALSE(read(wrong).ok());
  wrong["failures"][0][0] = -1;
  CHECK_FALSE(read(wrong).ok());
  for (const Json& number : {Json(0.5), Json(1.8e20), Json(true)}) {
    CAPTURE(json_text(number));
    wrong["failures"][0][0] = number;
    CHECK_FALSE(read(wrong).ok());
  }
}

TEST_CASE("memory: numbers of pilots in it take no more than so much of ours") {
  auto memory = json_from(
      R"({"version": 1, "time": 1, "cycle": 3, "groups": [[1, 2, 3, 0, "", "", ""]], "images": []})");
  for (int i = 0; i < 5000; ++i) memory["wasted"].push_back({0, i, 1'000'000'000});
  const auto recalled = read_memory(memory, PolicySettings{}, Time{Seconds(1'000'000)}).value();
  CHECK(recalled.fates.begin()->second.wasted.size() == 10'000);
}

TEST_CASE("memory: since when jobs are left to running pods goes on") {
  CourseOfPods course;
  auto& jobs = course.demand.groups.at(Group{});
  jobs.largest = of_job(1, 1000, 1000, 0);
  course.claimed("p", "n");
  Slot own{"p", false, ""};
  own.room = of_slot(6, 8192, 1'000'000, 0, 6);
  own.room_until = course.now + Seconds(3600);
  course.slots.push_back(own);
  CHECK(course.step().decisions.at(0).fit == 6);
  for (int i = 0; i < 4; ++i) {
    change_leader(course);
    CHECK(course.step().decisions.at(0).fit == 6);
  }
  change_leader(course);
  CHECK(course.step().decisions.at(0).fit == 0);
}

TEST_CASE("memory: nothing in it lasts longer than the settings allow") {
  const Time now{Seconds(1'000'000)};
  const auto memory = json_from(R"({"version": 1, "time": 1, "cycle": 3, "groups": [[1, 2, 3, 0, "", "", ""]],
    "images": ["img"], "breakers": [[0, 0, 9000000, 0, 9000000, 9000000]],
    "nodes": [["n", 9000000, 9000000, -5, 3]]})");
  const auto recalled = read_memory(memory, PolicySettings{}, now).value();
  const auto& breaker = recalled.history.breakers.begin()->second;
  CHECK(breaker.opened == now);
  CHECK(breaker.next_canary == now + Seconds(7200));
  CHECK(breaker.pause == Seconds(7200));
  CHECK(recalled.history.nodes.at("n").until == now + Seconds(7200));
  CHECK(recalled.history.nodes.at("n").pause == Seconds(0));
}

TEST_CASE("memory: it is bounded, the newest first") {
  CourseOfPods course;
  course.policy.settings.breaker_failures = 0;
  for (int i = 0; i < 1000; ++i)
    course.add(fmt::format("p{}{}", i, std::string(200, 'x')), "n", PodState::pull_error);
  course.step();
  course.add("last", "n", PodState::pull_error);
  course.step();
  const auto memory = memory_json(course.tracker, course.history, course.now);
  CHECK(json_text(memory).size() <= k_longest_memory);
  CHECK(memory["failures"].size() >= 50);
  CHECK(memory["failures"][0][3] == "last");
}

TEST_CASE("memory: the lease keeps it, also when it is renewed without a new one or given back") {
  const LeaseOptions options{"ns", "name", "me"};
  const auto first = renewed_lease(Json(), options, "me", {}, R"({"version": 1})");
  CHECK(memory_in(first) == Json{{"version", 1}});
  CHECK(memory_in(renewed_lease(first, options, "other", {})) == Json{{"version", 1}});
  CHECK(memory_in(renewed_lease(first, options, "", {}, R"({"version": 2})")) == Json{{"version", 2}});
  CHECK(memory_in(Json()).is_null());
  CHECK(memory_in(renewed_lease(Json(), options, "me", {})).is_null());
  CHECK(memory_in(renewed_lease(Json(), options, "me", {}, "{")).is_discarded());
}
