// Spare containers by themselves; test_core_spares.cpp has what the core makes of them, and test_likely.cpp
// what is likely.
#include <doctest/doctest.h>

#include <string>

#include "lib/kube/pulls.hpp"
#include "pilot-agent/core/spares.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

const Image k_first{"reg.example/first:1"}, k_second{"reg.example/second:1"};

// Idle containers with the pilot's own image, of which one is to be spare; the digest of one image is known.
struct SpareContainers {
  explicit SpareContainers(int count, int beyond = 1) {
    policy.spares = beyond;
    references.set_home("reg.example/pilot:1");
    kube::ContainerStatus shown;
    shown.image_id = "reg.example/first@sha256:" + std::string(64, 'a');
    references.learn(k_first, k_first.name(), shown);
    for (int i = 0; i < count; ++i) {
      Container& container = containers.add("payload-" + std::to_string(i));
      container.glue = static_cast<GlueId>(i) + 1;
      container.last_used = now + std::chrono::seconds(i);
      container.state = Idle{};
    }
  }
  Container& operator[](std::size_t i) { return containers[i]; }

  Policy policy;
  Actions actions;
  References references{"n"};
  Containers containers{actions, {}};
  Spares spares{policy, references, containers};
  Time now{1000s};
};

}  // namespace

TEST_CASE("spares: the next one is for what ran lately, if its digest is known") {
  SpareContainers some(2);
  CHECK_FALSE(some.spares.next(some.now));
  some.spares.ran(k_second, "alice");
  CHECK_FALSE(some.spares.next(some.now));
  some.spares.ran(k_first, "alice");
  const auto next = some.spares.next(some.now);
  REQUIRE(next);
  CHECK(next->container == &some[0]);
  CHECK(next->image == k_first);
  some[0].unsettle(some.now + 90s);
  CHECK_FALSE(some.spares.next(some.now));
}

TEST_CASE("spares: what an announced job awaits is taken last, however long nobody has used it") {
  SpareContainers some(2, 0);
  some[0].proven = k_first;
  CHECK(some.spares.least_wanted_idle(some.now) == &some[0]);
  some.spares.announced.add({0, wire::Verb::announce, false, k_first, "alice", "1.0", 20001}, some.now);
  CHECK(some.spares.least_wanted_idle(some.now) == &some[1]);
  some[1].state = Reserved{};
  CHECK(some.spares.least_wanted_idle(some.now) == &some[0]);
}

TEST_CASE("spares: an announced job is waited for only where there are spares to be renewed") {
  for (const int beyond : {0, 1}) {
    SpareContainers some(2, beyond);
    Request job;
    job.asked = k_first;
    some.spares.announce(job, some.now);
    const auto until = some.now + (beyond == 0 ? some.policy.bind_deadline : some.policy.renewal_calm);
    CHECK(some.spares.next_deadline() == until);
  }
}

TEST_CASE("spares: what waits in the queue is what was told last") {
  SpareContainers some(2);
  kube::Pod pod;
  pod.likely_images = {{k_first.name(), 1000}};
  some.spares.told(pod);
  REQUIRE(some.spares.next(some.now));
  pod.likely_images = {{k_second.name(), 1000}};
  some.spares.told(pod);
  CHECK_FALSE(some.spares.next(some.now));
}

TEST_CASE("spares: none is made ready while the registry is asked, or a switch is under way for a job") {
  SpareContainers some(3);
  some.spares.ran(k_first, "alice");
  REQUIRE(some.spares.next(some.now));
  SUBCASE("for a job") {
    some[2].state = Switching{};
  }
  SUBCASE("the registry is asked") {
    some[2].state = Asking{Waiting{}, "warm"};
  }
  CHECK_FALSE(some.spares.next(some.now));
}

TEST_CASE("spares: what is being made ready counts, and four at a time are enough") {
  SpareContainers some(7, 7);
  some.spares.ran(k_first, "alice");
  Switching step;
  step.asked = k_first;
  step.spare = true;
  for (std::size_t i = 0; i < 3; ++i) some[i].state = step;
  REQUIRE(some.spares.next(some.now));
  CHECK(some.spares.next(some.now)->container == &some[3]);
  some[3].state = step;
  CHECK_FALSE(some.spares.next(some.now));
}

TEST_CASE("spares: so many containers stay as they are as jobs can come") {
  SpareContainers some(3);
  some.spares.ran(k_first, "alice");
  some[0].state = Reserved{};
  REQUIRE(some.spares.next(some.now));
  some[0].state = Absent{};
  CHECK_FALSE(some.spares.next(some.now));
}

TEST_CASE("spares: one that is kept for a claim is left alone") {
  SpareContainers some(1);
  some.spares.ran(k_first, "alice");
  some[0].kept = {20001, some.now + 60s};
  CHECK_FALSE(some.spares.next(some.now));
  CHECK(some.spares.next(some.now + 60s));
}

TEST_CASE("spares: an image that could not be had is tried again after a pause") {
  SpareContainers some(1);
  some.spares.ran(k_first, "alice");
  CHECK_FALSE(some.spares.next_deadline());
  some.spares.failed(k_first, some.now);
  const Time again = some.now + some.policy.renewal_pause;
  CHECK(some.spares.next_deadline() == again);
  some.spares.on_time(again - 1s);
  CHECK_FALSE(some.spares.next(again - 1s));
  some.spares.on_time(again);
  CHECK(some.spares.next(again));
  CHECK_FALSE(some.spares.next_deadline());
}

TEST_CASE("spares: the pod says what waiting jobs want, and a later word takes the place of an earlier one") {
  SpareContainers some(1);
  kube::Pod pod;
  pod.likely_images = {{k_first.name(), 1000}};
  some.spares.told(pod);
  REQUIRE(some.spares.next(some.now));
  pod.likely_images = {{"reg.example/pilot:1", 1000}};  // which it has
  some.spares.told(pod);
  CHECK_FALSE(some.spares.next(some.now));
}

TEST_CASE("spares: a job takes the idle one that is missed least, and without spares the coldest") {
  SpareContainers some(2);
  some[0].proven = k_first;
  some.spares.ran(k_first, "alice");
  CHECK(some.spares.least_wanted_idle(some.now) == &some[1]);
  some[1].kept = {20001, some.now + 60s};
  CHECK(some.spares.least_wanted_idle(some.now) == &some[0]);
  some[0].kept = some[1].kept;
  CHECK(some.spares.least_wanted_idle(some.now) == &some[0]);
  some[0].kept.reset();
  some[1].kept.reset();
  some[0].spoiled = true;  // nobody can have it as it is
  CHECK(some.spares.least_wanted_idle(some.now) == &some[0]);
  some[0].spoiled = false;
  some.policy.spares = 0;
  CHECK(some.spares.least_wanted_idle(some.now) == &some[0]);
  for (Container& container : some.containers) container.state = Absent{};
  CHECK(some.spares.least_wanted_idle(some.now) == nullptr);
}
