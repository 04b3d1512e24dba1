#include "provisioner/simulate/judge.hpp"

#include <doctest/doctest.h>

#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

// Cycles that are told to a judge as a simulation would.
struct Course {
  Scenario scenario;
  Judge judge{scenario};
  Demand demand;
  Supply supply;
  Plan plan;

  Course() { scenario.streams.push_back({.group = group(1)}); }
  GroupSupply& pods(std::int64_t claimed) {
    auto& result = supply.groups[group(1)];
    result.claimed = claimed;
    return result;
  }
  void owner(const std::string& name, std::int64_t has, std::int64_t waits) {
    supply.claimed_by_owner[name] = has;
    demand.groups[group(1)].owners[name] = waits;
  }
  void pass(Seconds time) {
    for (Seconds end = time; end > Seconds(0); end -= scenario.cycle) judge(demand, supply, plan);
  }
  Judgement judgement() const { return judge.judgement({Sample{}}); }
};

}  // namespace

TEST_CASE("judge: waste is the time on nodes without a job") {
  Course course;
  auto& pods = course.pods(60);
  pods.unmatched = 20;
  pods.broken = 10;
  pods.waiting = 40;
  pods.unschedulable = 30;  // these take nothing from anybody
  course.pass(Seconds(3600));
  CHECK(course.judgement().waste == doctest::Approx(0.4));
}

TEST_CASE("judge: fairness is Jain's index over the parts of max-min fair shares") {
  Course course;
  SUBCASE("who wants little and gets it is no reason for others to have as little") {
    course.owner("alice", 10, 0);
    course.owner("bob", 45, 1000);
    course.owner("carol", 45, 1000);
    course.pass(Seconds(3600));
    CHECK(course.judgement().fairness == doctest::Approx(1));
  }
  SUBCASE("one of two has everything") {
    course.owner("alice", 100, 1000);
    course.owner("bob", 0, 1000);
    course.pass(Seconds(3600));
    const auto got = course.judgement();
    CHECK(got.fairness == doctest::Approx(0.5));
    CHECK(got.last_owner == "bob");
    CHECK(got.last_share == 0);
  }
  SUBCASE("an hour may be bad where the day is good") {
    course.owner("alice", 100, 1000);
    course.owner("bob", 0, 1000);
    course.pass(Seconds(3600));
    course.owner("alice", 0, 1000);
    course.owner("bob", 100, 1000);
    course.pass(Seconds(3600));
    CHECK(course.judgement().fairness == doctest::Approx(1));
    CHECK(course.judgement().worst_hour == doctest::Approx(0.5));
  }
  SUBCASE("what cannot be seen is not judged") {
    course.owner("alice", 100, 1000);
    course.owner("bob", 0, 1000);
    course.plan.blind = "no collector";
    course.pass(Seconds(3600));
    CHECK(course.judgement().fairness == 1);
  }
}

TEST_CASE("judge: a swing is a second turn by more than half of a group's pods while jobs come as before") {
  Course course;
  const auto go = [&course](std::initializer_list<std::int64_t> numbers) {
    for (const auto number : numbers) {
      course.pods(number);
      course.pass(course.scenario.cycle);
    }
    return course.judgement().swings;
  };
  course.pods(100);
  course.pass(Seconds(2 * 3600 + 120));
  CHECK(go({100, 120, 90, 110, 60, 100}) == 0);
  CHECK(go({30, 100}) == 0);  // once
  CHECK(go({30, 100}) == 2);
  // What begins may move them.
  course.scenario.streams[0].until = Seconds(2 * 3600);
  CHECK(go({30, 100, 30, 100}) == 2);
}

TEST_CASE("judge: what was made in vain is counted") {
  Course course;
  course.plan.removals = {{"a", ""}, {"b", ""}, {"done", ""}};
  course.supply.ended = {{.name = "done"}};
  course.pass(Seconds(120));
  Sample last;
  last.submitted = 10;
  last.wasted_pods = 3;
  const auto got = course.judge.judgement({last});
  CHECK(got.taken_back == 2);
  CHECK(got.ended_unused == 3);
  CHECK(got.submitted == 10);
  CHECK(to_text(got).find("of 10 pods 3 ended without having had a job, 2 were taken back") !=
        std::string::npos);
}
