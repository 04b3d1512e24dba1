#include "provisioner/page/course.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace glidepod;
using namespace glidepod::provisioner;
using Json = nlohmann::json;

namespace {

constexpr std::int64_t k_minute = 60, k_day = std::int64_t{24} * 3600;

Decision decision(std::int64_t cpus, std::int64_t idle, std::int64_t claimed = 0) {
  Decision result;
  result.group.cpus = cpus;
  result.demand.idle = idle;
  result.supply.claimed = claimed;
  result.supply.waiting = 2;
  result.supply.wasted = 1;
  return result;
}

Plan plan(std::vector<Decision> decisions) {
  Plan result;
  result.decisions = std::move(decisions);
  return result;
}

std::string hash_of(std::int64_t cpus) {
  return decision(cpus, 0).group.hash();
}

struct Scene {
  Course course;

  void add(std::int64_t at, std::vector<Decision> decisions) {
    course.add(plan(std::move(decisions)), Time(Seconds(at)));
  }
  Json points(const std::string& hash) const { return course.json(hash).value_or(Json{})["points"]; }
};

}  // namespace

TEST_CASE("course: a point a minute, of each group and of all") {
  Scene scene;
  scene.add(600, {decision(1, 10, 3), decision(2, 5)});
  scene.add(630, {decision(1, 8, 4), decision(2, 5)});
  scene.add(660, {decision(1, 7)});
  const auto all = scene.course.json("all").value();
  CHECK(all["columns"] == Json({"unix_time", "idle", "waiting", "unmatched", "claimed", "broken", "wasted"}));
  CHECK(all["points"] == Json({{600, 13, 4, 0, 4, 0, 2}, {660, 7, 2, 0, 0, 0, 1}}));
  CHECK(scene.points(hash_of(1)) == Json({{600, 8, 2, 0, 4, 0, 1}, {660, 7, 2, 0, 0, 0, 1}}));
  // A group that is gone has nothing from then on.
  CHECK(scene.points(hash_of(2)) == Json({{600, 5, 2, 0, 0, 0, 1}, {660, 0, 0, 0, 0, 0, 0}}));
  CHECK(!scene.course.json("nothing"));
  CHECK(!scene.course.json(""));
}

TEST_CASE("course: a blind cycle leaves a gap, nobody takes it for nothing") {
  Scene scene;
  scene.add(600, {decision(1, 10)});
  auto blind = plan({});
  blind.blind = "no collector";
  scene.course.add(blind, Time(Seconds(660)));
  CHECK(scene.points("all").size() == 1);
}

TEST_CASE("course: a day is kept, then groups that had nothing are forgotten") {
  Scene scene;
  scene.add(0, {decision(1, 10), decision(2, 1)});
  for (std::int64_t at = k_minute; at < 2 * k_day; at += k_minute) scene.add(at, {decision(1, 10)});
  CHECK(scene.points("all").size() == Course::k_most_points);
  CHECK(scene.points(hash_of(1)).size() == Course::k_most_points);
  CHECK(scene.points(hash_of(1))[0][0] == k_day);
  CHECK(!scene.course.json(hash_of(2)));
}

TEST_CASE("course: a clock that is set back makes no points twice") {
  Scene scene;
  for (const auto at : {600, 660, 720}) scene.add(at, {decision(1, 10)});
  scene.add(650, {decision(1, 11)});
  CHECK(scene.points("all") == Json::array({Json({600, 11, 2, 0, 0, 0, 1})}));
  CHECK(scene.points(hash_of(1)).size() == 1);
}

TEST_CASE("course: so many groups, the largest first, and one that has ended makes room") {
  Scene scene;
  std::vector<Decision> decisions;
  for (std::int64_t i = 1; i <= 100; ++i) decisions.push_back(decision(i, i));
  scene.add(600, decisions);
  const auto kept = [&scene] {
    std::size_t count = 0;
    for (std::int64_t i = 1; i <= 100; ++i) count += scene.course.json(hash_of(i)) ? 1 : 0;
    return count;
  };
  CHECK(kept() == Course::k_most_groups);
  CHECK(scene.course.json(hash_of(100)));
  CHECK(!scene.course.json(hash_of(1)));
  // All of them still have jobs: a new one is not kept, but counted.
  scene.add(660, decisions);
  CHECK(!scene.course.json(hash_of(1)));
  CHECK(scene.points("all")[1][1] == 5050);
  decisions.pop_back();
  scene.add(720, decisions);
  scene.add(780, decisions);
  scene.add(840, decisions);
  CHECK(!scene.course.json(hash_of(100)));
  CHECK(scene.course.json(hash_of(36)));
  CHECK(kept() == Course::k_most_groups);
}
