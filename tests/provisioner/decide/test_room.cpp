#include "provisioner/decide/room.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include "tests/provisioner/decide/inputs.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Scene : Inputs {
  // Jobs that ask for little memory and disk.
  GroupDemand& jobs(const Group& group, std::int64_t idle) {
    auto& d = demand.groups[group];
    d.idle = idle;
    d.owners["alice"] = idle;
    d.largest = of_job(group.cpus, 2048, 1000, group.gpus);
    return d;
  }
  // A pod with a job that has so many CPUs left.
  Room& room(const Group& group, std::int64_t cpus, std::int64_t containers = 8) {
    ++supply.groups[group].claimed;
    supply.rooms.push_back({group, of_slot(cpus, 16384, 7'900'000, group.gpus, containers), true});
    return supply.rooms.back();
  }
  Decision look(const Group& of, Seconds later = Seconds(0)) {
    now += later;
    for (const auto& decision : plan().decisions)
      if (decision.group == of) return decision;
    FAIL("no decision");
    return {};
  }
};

}  // namespace

namespace {

// Too small for all but a few. The processor time.
double look_at_rooms(int groups, int rooms) {
  Demand demand;
  Supply supply;
  Policy policy;
  std::map<Group, std::int64_t> counted;
  std::map<Group, Time> since;
  for (int i = 0; i < groups; ++i) {
    const Group group{.cpus = 4 + i % 60, .memory_mb = 8'192 + i};
    counted[group] = 40;
    demand.groups[group].idle = 40;
  }
  for (int i = 0; i < rooms; ++i)
    supply.rooms.push_back({{.cpus = 8 + i % 7, .memory_mb = 20'000 + i},
                            of_slot(i % 100 == 0 ? 4 : 1 + i % 3, 9'000 + i % 3'000, 90'000'000, 0, 4),
                            true});
  timespec before{}, after{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  const auto left = leave_to_pods(counted, demand, supply, policy, Time(Seconds(1'000'000)), since);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  std::int64_t jobs = 0;
  for (const auto& [group, part] : left) jobs += part.jobs;
  CHECK(jobs > 0);
  CHECK(jobs <= rooms / 100);
  const auto took = static_cast<double>(after.tv_sec - before.tv_sec) +
                    static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e9;
  MESSAGE("in ", took, " s of processor");
  return took;
}

}  // namespace

TEST_CASE("room: 5,000 groups look at 20,000 rooms, and 10,000 at 50,000, in a moment") {
  CHECK(look_at_rooms(5'000, 20'000) < 2);
  CHECK(look_at_rooms(10'000, 50'000) < 4);
}

TEST_CASE("room: jobs that fit into what running pods have left ask for no new ones") {
  Scene scene;
  scene.jobs(group(2), 20);
  scene.room(group(8), 6);
  const auto got = scene.look(group(2));
  CHECK(got.fit == 3);
  CHECK(got.counted == 20);
  CHECK(got.submit == pressure(17, 20));
  CHECK(got.reason() == "3 of 20 idle jobs fit into running pods; 17 idle jobs ask for 5 waiting pods");
}

TEST_CASE("room: with count_free_capacity=no it is PRP's law") {
  Scene scene;
  scene.jobs(group(2), 20);
  scene.room(group(8), 6);
  scene.policy.settings.count_free_capacity = false;
  const auto got = scene.look(group(2));
  CHECK(got.fit == 0);
  CHECK(got.reason() == "20 idle jobs ask for 6 waiting pods");
}

TEST_CASE("room: each of CPUs, memory, disk and containers limits what fits") {
  struct Row {
    Resources left;
    std::int64_t fit;
  };
  const Row rows[] = {
      {of_slot(6, 16384, 7'900'000, 0, 8), 3}, {of_slot(6, 2048, 7'900'000, 0, 8), 1},
      {of_slot(6, 2047, 7'900'000, 0, 8), 0},  {of_slot(6, 16384, 6100, 0, 8), 2},
      {of_slot(6, 16384, 7'900'000, 0, 1), 1}, {of_slot(1, 16384, 7'900'000, 0, 8), 0},
  };
  for (const auto& row : rows) {
    Scene scene;
    scene.jobs(group(2), 20);
    scene.room(group(8), 6).left = row.left;
    CAPTURE(row.fit);
    CHECK(scene.look(group(2)).fit == row.fit);
  }
}

TEST_CASE("room: where nobody knows what the jobs ask for it is their group's size") {
  Scene scene;
  scene.jobs(group(2), 20).largest.reset();
  scene.room(group(8), 6);
  CHECK(scene.look(group(2)).fit == 0);
  scene.supply.rooms[0].left = of_slot(6, 16384, 8'002'048, 0, 8);
  CHECK(scene.look(group(2)).fit == 1);
}

TEST_CASE("room: pods made for something else do not count") {
  using Change = void (*)(Group&);
  for (const Change change :
       {Change([](Group& g) { g.labels = "zone:a"; }),
        Change([](Group& g) { g.disk_volumes = "data:/data"; }), Change([](Group& g) { g.gpus = 1; })}) {
    for (const bool of_jobs : {true, false}) {
      Scene scene;
      Group jobs = group(2), pods = group(8);
      change(of_jobs ? jobs : pods);
      scene.jobs(jobs, 20);
      scene.room(pods, 6);
      CHECK(scene.look(jobs).fit == 0);
    }
    Scene scene;
    Group jobs = group(2), pods = group(8);
    change(jobs);
    change(pods);
    scene.jobs(jobs, 20);
    scene.room(pods, 6);
    CHECK(scene.look(jobs).fit > 0);
  }
  // Nor those with GPUs of another kind.
  Scene scene;
  Group jobs = group(2), pods = group(8);
  jobs.gpus = pods.gpus = 1;
  jobs.gpu_types = "A100";
  scene.jobs(jobs, 20);
  scene.room(pods, 6);
  CHECK(scene.look(jobs).fit == 0);
}

TEST_CASE("room: each piece is used once over all groups, by the pod's own group first") {
  Scene scene;
  scene.jobs(group(1), 100);
  scene.jobs(group(2), 100);
  scene.jobs(group(4), 100);
  scene.room(group(2), 6);
  CHECK(scene.look(group(2)).fit == 3);
  CHECK(scene.look(group(1)).fit == 0);
  scene.supply.rooms[0].left = of_slot(7, 16384, 7'900'000, 0, 8);
  CHECK(scene.look(group(2)).fit == 3);
  CHECK(scene.look(group(1)).fit == 1);
  scene.supply.rooms[0].group = group(8);
  CHECK(scene.look(group(4)).fit == 1);
  CHECK(scene.look(group(2)).fit == 1);
  CHECK(scene.look(group(1)).fit == 1);
}

TEST_CASE("room: a free pod is for its own group as long as that has jobs, and never counts twice") {
  Scene scene;
  scene.jobs(group(2), 20);
  scene.room(group(8), 8).has_job = false;
  CHECK(scene.look(group(2)).fit == 4);
  scene.jobs(group(8), 1);
  CHECK(scene.look(group(2)).fit == 0);
  // The law has taken it off as a pod that waits.
  CHECK(scene.look(group(8)).fit == 0);
  scene.jobs(group(8), 0);
  CHECK(scene.look(group(2)).fit == 4);
  scene.demand.groups.erase(group(8));
  scene.policy.least_fill = 50;
  CHECK(scene.look(group(2)).fit == 0);
  scene.supply.rooms[0].has_job = true;
  CHECK(scene.look(group(2)).fit == 4);
}

TEST_CASE("room: jobs that seem to fit and never match are not held back for long") {
  Scene scene;
  scene.jobs(group(2), 3);
  scene.room(group(8), 6);
  for (int i = 0; i < 5; ++i) CHECK(scene.look(group(2), Seconds(60)).submit == 0);
  const auto late = scene.look(group(2), Seconds(60));
  CHECK(late.submit == 1);
  CHECK(late.reason() ==
        "3 of 3 idle jobs seem to fit into running pods, but have waited for 300 s: all count; 3 idle jobs "
        "ask for 1 "
        "waiting pods");
  // That pod is there, and it begins anew.
  CHECK(scene.look(group(2), Seconds(60)).fit == 3);
}

TEST_CASE("room: they count for as long as no pod can be made for them") {
  Scene scene;
  scene.jobs(group(2), 3);
  scene.room(group(8), 6);
  scene.look(group(2));
  scene.policy.settings.max_pods = 1;
  for (int i = 0; i < 3; ++i) {
    const auto got = scene.look(group(2), Seconds(300));
    CHECK(got.fit == 0);
    CHECK(got.verdict == Decision::Verdict::limited);
  }
  scene.policy.settings.max_pods = 0;
  CHECK(scene.look(group(2), Seconds(1)).submit == 1);
}

TEST_CASE("room: once nothing fits or nobody waits, the next time has its full limit") {
  Scene scene;
  scene.jobs(group(2), 3);
  scene.room(group(8), 6);
  scene.look(group(2));
  scene.look(group(2), Seconds(200));
  const auto rooms = std::exchange(scene.supply.rooms, {});
  CHECK(scene.look(group(2), Seconds(50)).submit == 1);
  scene.supply.rooms = rooms;
  CHECK(scene.look(group(2), Seconds(100)).fit == 3);
  CHECK(scene.look(group(2), Seconds(299)).fit == 3);
}

TEST_CASE("room: pods that wait are not taken back for jobs that may fit elsewhere") {
  Scene scene;
  scene.jobs(group(2), 3);
  scene.room(group(8), 6);
  auto& pods = scene.supply.groups[group(2)];
  pods.waiting = pods.unschedulable = 1;
  scene.supply.jobless = {{"p", group(2), PodState::unschedulable, scene.now}};
  scene.policy.settings.free_capacity_limit = Seconds(100'000);
  for (int i = 0; i < 4; ++i) {
    scene.now += Seconds(400);
    const auto plan = scene.decided();
    scene.history = plan.history;
    CHECK(plan.removals.empty());
  }
}

TEST_CASE("room: of very many rooms each counts once, whatever the first have") {
  Scene scene;
  scene.jobs(group(1), 1000);
  for (int i = 0; i < 200; ++i) scene.room(group(8), i % 64 == 0 ? 0 : 1);
  CHECK(scene.look(group(1)).fit == 196);
}

TEST_CASE("room: no more jobs fit than there are, and the rest is for others") {
  Scene scene;
  scene.jobs(group(2), 4);
  scene.jobs(group(1), 100);
  scene.room(group(8), 6);
  scene.room(group(8), 6);
  CHECK(scene.look(group(2)).fit == 4);
  CHECK(scene.look(group(1)).fit == 4);
}

TEST_CASE("room: pods for the rest of the jobs do not make the time begin anew, those for all do") {
  Scene scene;
  scene.jobs(group(2), 20);
  scene.room(group(8), 6);
  CHECK(scene.look(group(2)).submit > 0);
  CHECK(scene.look(group(2), Seconds(299)).fit == 3);
  CHECK(scene.look(group(2), Seconds(1)).fit == 0);
  CHECK(scene.look(group(2), Seconds(1)).fit == 3);
  // Also such as wait already.
  scene.supply.groups[group(2)].waiting = 20;
  CHECK(scene.look(group(2), Seconds(300)).submit == 0);
  CHECK(scene.look(group(2), Seconds(1)).fit == 3);
}
