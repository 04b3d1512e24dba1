// What is asked about all containers together, by itself; test_core_*.cpp have what the core makes of it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pilot-agent/core/containers.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

const std::string k_some_image = "reg.example/job:1";

// Idle containers, each with a glue.
struct SomeContainers {
  explicit SomeContainers(int count) {
    for (int i = 0; i < count; ++i) {
      Container& container = all.add("payload-" + std::to_string(i));
      container.glue = static_cast<GlueId>(i) + 1;
      container.state = Idle{};
    }
  }
  Container& operator[](std::size_t i) { return all[i]; }
  std::vector<Action> told() { return actions.take(); }

  Actions actions;
  Containers all{actions, {}};
};

Request request_from(ClientId client, uid_t uid = 20001, const std::string& image = k_some_image) {
  Request request;
  request.client = client;
  request.uid = uid;
  request.asked = Image(image);
  return request;
}

Running running_job(JobId id, const Request& request) {
  Running state;
  state.job.id = id;
  state.job.request = request;
  return state;
}

}  // namespace

TEST_CASE("containers: a state changes as the table has it, and another change is told of") {
  SomeContainers some(1);
  std::vector<State> seen;
  some.all.observe([&](const Container& container, const Transition& transition) {
    CHECK(container.kind() == transition.to);
    seen.push_back(transition.to);
  });
  some.all.become(some[0], Absent{}, EventKind::lost);
  CHECK(some.told().empty());
  some.all.become(some[0], Broken{}, EventKind::likely);
  const auto told = some.told();
  REQUIRE(told.size() == 1);
  CHECK(std::get<Note>(told.front()).text ==
        "event=unexpected_transition container=payload-0 from=absent by=likely to=broken");
  CHECK(seen == std::vector{State::absent, State::broken});
}

TEST_CASE("containers: each is found by its name, glue, job, client and patch, and 0 is nobody's") {
  SomeContainers some(2);
  some[1].state = running_job(7, request_from(70));
  some[0].glue = 0;
  CHECK(some.all.find("payload-1") == &some[1]);
  CHECK(some.all.find("payload-2") == nullptr);
  CHECK(some.all.of_glue(2) == &some[1]);
  CHECK(some.all.of_glue(0) == nullptr);
  CHECK(some.all.of_job(2, 7) == &some[1]);
  CHECK(some.all.of_job(2, 8) == nullptr);
  CHECK(some.all.of_job(1, 7) == nullptr);
  CHECK(some.all.of_client(70) == &some[1]);
  std::get<Running>(some[1].state).job.request.client = 0;
  CHECK(some.all.of_client(0) == nullptr);
  Switching step;
  step.attempt = 3;
  some[0].state = step;
  CHECK(some.all.of_patch(3) == &some[0]);
  CHECK(some.all.of_patch(4) == nullptr);
  CHECK(some.all.state_of("payload-0") == State::switching);
  CHECK_FALSE(some.all.state_of("payload-2"));
}

TEST_CASE("containers: a request waits in a switch or for a registry, until it is dropped") {
  SomeContainers some(2);
  Switching step;
  step.waiting = Waiting{request_from(70), {}};
  some[0].state = step;
  some[1].state = Asking{Waiting{request_from(71), {}}, "warm"};
  CHECK(some.all.waiting_of(70)->request.client == 70);
  CHECK(some.all.waiting_of(71)->request.client == 71);
  CHECK(some.all.waiting_of(72) == nullptr);
  some.all.drop_waiting(70, EventKind::gone);
  some.all.drop_waiting(71, EventKind::gone);
  CHECK(some.all.waiting_of(70) == nullptr);
  CHECK(some[0].kind() == State::switching);
  CHECK(some[1].kind() == State::idle);
}

TEST_CASE("containers: what was tested is reserved until its slot asks for something else") {
  SomeContainers some(1);
  const Request tested = request_from(70);
  some[0].state = Reserved{tested, "warm"};
  CHECK(some.all.reserved_for(tested) == &some[0]);
  CHECK(some.all.reserved_for(request_from(71, 20002)) == nullptr);
  CHECK(some.all.reserved_for(request_from(71, 20001, "reg.example/other:1")) == nullptr);
  some.all.free_reservations(tested);
  some.all.free_reservations(request_from(71, 20002));
  CHECK(some[0].kind() == State::reserved);
  some.all.free_reservations(request_from(71, 20001, "reg.example/other:1"));
  CHECK(some[0].kind() == State::idle);
}

TEST_CASE("containers: warm is for the same owner alone, and a settled one is better") {
  SomeContainers some(3);
  for (Container& container : some.all) container.proven = Image(k_some_image);
  some[0].owner = "bob";
  some[1].unsettle(Time(10s));
  CHECK(some.all.warm_for(Image(k_some_image), "alice") == &some[2]);
  some[2].spoiled = true;
  CHECK(some.all.warm_for(Image(k_some_image), "alice") == &some[1]);
  some[1].inherited = true;
  CHECK(some.all.warm_for(Image(k_some_image), "alice") == nullptr);
  CHECK(some.all.warm_for(Image(k_some_image), "bob") == &some[0]);
  CHECK(some.all.warm_for(Image("reg.example/other:1"), "bob") == nullptr);
}

TEST_CASE("containers: the coldest one is taken, one that is kept for a claim last") {
  SomeContainers some(3);
  some[0].last_used = Time(1s);
  some[1].last_used = Time(2s);
  some[2].last_used = Time(3s);
  some[0].kept = {20001, Time(100s)};
  CHECK(some.all.coldest(State::idle, Time(50s)) == &some[1]);
  CHECK(some.all.coldest(State::idle, Time(100s)) == &some[0]);
  CHECK(some.all.coldest(State::broken, Time(50s)) == nullptr);
  some[1].memory_limit_kib = 2000;
  some[2].memory_limit_kib = 1000;
  CHECK(some.all.smallest_idle(&some[1], Time(50s)) == &some[2]);
  some[2].memory_limit_kib = 2000;
  CHECK(some.all.smallest_idle(&some[2], Time(50s)) == &some[2]);
}

TEST_CASE("containers: a probe runs where no job was, and the test switch where no job's image is") {
  SomeContainers some(3);
  some[0].owner = "alice";
  some[1].proven = Image(k_some_image);
  some[2].last_used = Time(5s);
  CHECK(some.all.for_probe() == &some[1]);
  CHECK(some.all.for_test(Time(9s)) == &some[0]);
  some[0].proven = Image(k_some_image);
  CHECK(some.all.for_test(Time(9s)) == &some[2]);
  for (Container& container : some.all) container.state = Broken{};
  CHECK(some.all.for_probe() == nullptr);
  CHECK(some.all.for_test(Time(9s)) == &some[0]);
}

TEST_CASE("containers: a pilot job's own jobs have the containers that are left") {
  SomeContainers some(2);
  Request pilot = request_from(70);
  pilot.pilot = true;
  some[0].state = running_job(7, pilot);
  some[0].instance = "id";
  REQUIRE(some.all.pilot_in("id", 20001));
  CHECK(some.all.pilot_in("id", 20001)->id == 7);
  CHECK_FALSE(some.all.pilot_in("id", 20002));
  CHECK(some.all.pilot_of(7)->request.client == 70);
  CHECK_FALSE(some.all.pilot_of(8));
  Request inner = request_from(71, 100001);
  inner.outer = 7;
  CHECK(some.all.check_inner(inner, 0));
  CHECK_FALSE(some.all.check_inner(inner, 1));
  CHECK_FALSE(some.all.has_inner(7));
  some[1].state = running_job(8, inner);
  CHECK(some.all.has_inner(7));
  CHECK_FALSE(some.all.check_inner(inner, 0));
  inner.outer = 9;
  CHECK(some.all.check_inner(inner, 0).error().message() == "the pilot job that asks has ended");
}

TEST_CASE("containers: a user has a job that runs, is kept or waits, and clearing up is told apart") {
  SomeContainers some(3);
  CHECK_FALSE(some.all.busy());
  some[0].state = Reserved{request_from(70, 20001), "warm"};
  CHECK(some.all.has_job_of(20001));
  CHECK_FALSE(some.all.busy());
  some[1].state = Asking{Waiting{request_from(71, 20002), {}}, "warm"};
  CHECK(some.all.has_job_of(20002));
  some[2].state = Clearing{{{20003, 20003}, "payload-0", true}, 7};
  CHECK(some.all.of_clearing(some[2].glue, 7) == &some[2]);
  CHECK(some.all.of_clearing(some[2].glue, 8) == nullptr);
  CHECK(some.all.of_clearing(some[1].glue, 7) == nullptr);
  CHECK(some.all.of_job(some[2].glue, 7) == nullptr);
  CHECK_FALSE(some.all.has_job_of(20003));
  CHECK(some.all.is_clearing(20003));
  CHECK_FALSE(some.all.is_clearing(20001));
  CHECK(some.all.busy());
}

TEST_CASE("containers: where ids are known, a Hello comes from no other container") {
  SomeContainers some(2);
  CHECK(some.all.stranger(some[0], "").empty());
  some[1].last_instance = "one";
  CHECK(some.all.stranger(some[0], "one") == "the sender is in container payload-1");
  CHECK(some.all.stranger(some[0], "") == "the sender is in no payload container");
  CHECK(some.all.stranger(some[0], "two").empty());
  CHECK(some.all.stranger(some[1], "one").empty());
}

TEST_CASE(
    "containers: missing is whose glue is away or will be stopped, and a sidecar ends after the pilot") {
  SomeContainers some(4);
  some[0].glue = 0;
  some[1].state = Broken{};
  Switching step;
  step.attempt = 1;
  step.connected = some[2].glue;
  some[2].state = step;
  CHECK(some.all.missing() == std::vector<std::string>{"payload-0", "payload-1", "payload-2"});
  std::get<Switching>(some[2].state).leg = Switching::Leg::calm;
  CHECK(some.all.missing() == std::vector<std::string>{"payload-0", "payload-1"});
  CHECK(some.all.ending());
  CHECK(some.all.unended() == std::vector<std::string>{"payload-1", "payload-2", "payload-3"});
  for (Container& container : some.all) container.sidecar = true;
  CHECK_FALSE(some.all.ending());
  CHECK(some.all.unended().empty());
  CHECK(some.all.has_sidecars());
}

TEST_CASE("containers: the pod names them once it is known, and no older word of it is news") {
  kube::Pod pod;
  pod.containers = {{"pilot", "p", {"/usr/bin/pilot-agent"}},
                    {"payload-0", "p", {"/glidepod/bin/glue"}},
                    {"payload-1", "p", {"/glidepod/bin/glue"}},
                    {"proxy", "x", {"/proxy"}}};
  SomeContainers some(1);  // whose glue has come before
  CHECK_FALSE(some.all.known());
  some.all.begin(pod);
  CHECK(some.all.known());
  CHECK(some.all.size() == 2);
  Containers named(some.actions, {"payload-1"});
  named.begin(pod);
  CHECK(named.known());
  CHECK(named.size() == 1);
  pod.resource_version = "10";
  CHECK(some.all.is_news(pod));
  CHECK(some.all.is_news(pod));
  pod.resource_version = "9";
  CHECK_FALSE(some.all.is_news(pod));
}

TEST_CASE("containers: those of a pod are the named ones or, without names, those that start glue") {
  kube::Pod pod;
  pod.containers = {{"pilot", "p", {"/usr/bin/pilot-agent"}},
                    {"payload-0", "p", {"/glidepod/bin/glue"}},
                    {"proxy", "x", {"/proxy"}}};
  SomeContainers some(0);
  CHECK_FALSE(some.all.is_payload(pod, pod.containers[0]));
  CHECK(some.all.is_payload(pod, pod.containers[1]));
  CHECK(some.all.others(pod) == std::vector<std::string>{"proxy"});
  CHECK(some.all.needs_restarts(pod));
  const Containers named(some.actions, {"proxy"});
  CHECK(named.is_payload(pod, pod.containers[2]));
  CHECK(named.others(pod) == std::vector<std::string>{"payload-0"});
}
