#include "provisioner/service/pod_events.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Scene {
  PodEvents events;
  Observation seen;
  Time now{Seconds(1'800'000'000)};
  OwnerNaming naming = {};

  explicit Scene(int pods = 1) {
    for (int i = 0; i < pods; ++i) {
      Pod pod;
      pod.name = fmt::format("pod-{}", i);
      seen.pods.push_back(pod);
      Slot slot{pod.name};
      slot.name = fmt::format("slot1_1@{}", pod.name);
      slot.owner = "alice";
      slot.binds.emplace();
      seen.slots.push_back(slot);
    }
    look();
  }
  Slot& slot(std::size_t i = 0) { return seen.slots.at(i); }
  void bind(const std::string& id, std::size_t i = 0) {
    slot(i).claimed = true;
    slot(i).job = {id,           "running",  now, "payload-0",        "docker.io/library/app:1",
                   "sha256:abc", "switched", "",  std::optional(2.13)};
  }
  // Reasons of what is told, a while later.
  std::string look(Seconds later = Seconds(60)) {
    seen.at = now += later;
    std::string result;
    told = events.saw(seen, naming);
    for (const auto& event : told)
      result += (result.empty() ? "" : " ") + event.reason + (event.warning ? "!" : "");
    return result;
  }
  std::vector<PodEvent> told;
};

}  // namespace

TEST_CASE("pod events: a job that is bound is told once") {
  Scene s;
  s.bind("12.0");
  CHECK(s.look() == "Bound");
  CHECK(s.told[0].pod == "pod-0");
  CHECK(s.told[0].message ==
        "job 12.0 of alice runs in payload-0: docker.io/library/app:1 sha256:abc (switched, 2.1 s)");
  CHECK(s.look() == "");
  s.slot().claimed = false;
  CHECK(s.look() == "");
  s.slot().claimed = true;
  CHECK(s.look(PodEvents::k_pause) == "");  // still the same job
}

TEST_CASE("pod events: one of a reason and a pod in ten minutes") {
  Scene s;
  s.bind("1.0");
  CHECK(s.look() == "Bound");
  s.bind("2.0");
  CHECK(s.look(PodEvents::k_pause - Seconds(1)) == "");
  s.bind("3.0");
  CHECK(s.look(Seconds(1)) == "Bound");
}

TEST_CASE("pod events: what was there before the first look, another instance has told") {
  Scene s;
  s.events = {};
  s.bind("1.0");
  s.slot().trouble = "five failures";
  s.slot().held = "job 1.0: ...";
  s.seen.pods[0].leaving = true;
  s.slot().binds->counts[BindCounts::k_bound] = 7;
  CHECK(s.look() == "");
  CHECK(s.look() == "");
  s.seen.slots.clear();  // for a moment the collector has no ad
  CHECK(s.look() == "");
}

TEST_CASE("pod events: slots that were away for a moment have told already") {
  Scene s;
  s.bind("1.0");
  CHECK(s.look() == "Bound");
  const auto slots = std::exchange(s.seen.slots, {});
  CHECK(s.look(PodEvents::k_pause) == "");
  s.seen.slots = slots;
  CHECK(s.look(PodEvents::k_pause) == "");
}

TEST_CASE("pod events: a wait is told when it is long") {
  Scene s;
  s.bind("1.0");
  s.slot().job.bind_s.reset();
  s.slot().job.waits_for = "ErrImagePull: i/o timeout";
  CHECK(s.look(Seconds(29)) == "");
  CHECK(s.look(Seconds(1)) == "BindWaits!");
  CHECK(s.told[0].message == "job 1.0 waits for docker.io/library/app:1: ErrImagePull: i/o timeout");
}

TEST_CASE(
    "pod events: failed binds are counted by whose fault they are, and an agent's new count is no fault") {
  Scene s;
  auto& counts = s.slot().binds->counts;
  counts[0] = 9;
  CHECK(s.look() == "");
  counts[BindCounts::k_bound] = 2;
  counts[BindCounts::k_bound + 1] = 1;
  CHECK(s.look() == "BindFailed!");
  CHECK(s.told[0].message.find(": 2 by a fault of their own, 1 by one of") != std::string::npos);
  counts[BindCounts::k_bound + 2] = 3;
  CHECK(s.look(PodEvents::k_pause) == "BindFailed!");
  CHECK(s.told[0].message.find(", 3 by nobody knows whose") != std::string::npos);
  counts = {};
  CHECK(s.look(PodEvents::k_pause) == "");
}

TEST_CASE("pod events: a pilot that takes no more jobs says why") {
  Scene s;
  s.slot().trouble = "5 failures in a row, the last: \x1b[31mno\nanswer";
  CHECK(s.look() == "GivenUp!");
  CHECK(s.told[0].message == "takes no more jobs: 5 failures in a row, the last:  [31mno");
  CHECK(s.look(PodEvents::k_pause) == "");
}

TEST_CASE("pod events: a job that was held for its memory is told once") {
  Scene s;
  s.slot().held = "job 1.0: Job has gone over memory limit of 64 megabytes.";
  CHECK(s.look() == "OutOfResources!");
  CHECK(s.told[0].message == "put on hold: job 1.0: Job has gone over memory limit of 64 megabytes.");
  CHECK(s.look(PodEvents::k_pause) == "");
  s.slot().held = "job 2.0: Job has gone over memory limit of 64 megabytes.";
  CHECK(s.look(PodEvents::k_pause) == "OutOfResources!");
}

TEST_CASE("pod events: a pod that is asked to end has its jobs told, once") {
  Scene s(2);
  s.bind("1.0");
  CHECK(s.look() == "Bound");
  for (auto& pod : s.seen.pods) {
    pod.leaving = true;
    pod.message = "asked to end, by 12:00 at the latest";
  }
  CHECK(s.look() == "Draining");  // of the one with a job
  CHECK(s.told[0].pod == "pod-0");
  CHECK(s.told[0].message == "asked to end, by 12:00 at the latest: vacates 1.0");
  CHECK(s.look(PodEvents::k_pause) == "");
}

TEST_CASE("pod events: few of them in a large pool, and warnings first") {
  Scene s(60);
  for (std::size_t i = 0; i < 60; ++i) s.bind("1.0", i);
  for (std::size_t i = 55; i < 60; ++i) s.slot(i).trouble = "no";
  CHECK(s.look().starts_with("GivenUp! GivenUp! GivenUp! GivenUp! GivenUp! Bound Bound"));
  CHECK(s.told.size() == PodEvents::k_most);
}

TEST_CASE("pod events: owners are called as in the status") {
  Scene s;
  s.naming = [](const std::string&) { return std::string("owner-1"); };
  s.bind("1.0");
  s.look();
  CHECK(s.told.at(0).message.starts_with("job 1.0 of owner-1 runs"));
}
