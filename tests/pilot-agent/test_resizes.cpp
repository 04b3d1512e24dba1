// The resizes by themselves; test_core_resizing.cpp and test_core_sizes.cpp have what the core makes of them.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/resizes.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t k_gib_each = std::int64_t{1} << 30;
constexpr Amount k_pod_amount{4000, 4 * k_gib_each}, k_slot_amount{2000, 2 * k_gib_each},
    k_small_amount{1000, k_gib_each};
constexpr Time k_resized_at{1000s};

Policy resizing_policy() {
  Policy policy;
  policy.resize = true;
  return policy;
}

// Two idle containers that were made with a quarter of the pod each.
struct SizedContainers {
  explicit SizedContainers(bool serves = true, std::optional<Time> earlier_until = std::nullopt) {
    for (const std::string name : {"payload-0", "payload-1"}) {
      Container& container = containers.add(name);
      container.state = Idle{};
      container.glue = static_cast<GlueId>(containers.size());
      pod.containers.push_back({name, "p", {"/glidepod/bin/glue"}});
      pod.containers.back().size = {k_small_amount, k_small_amount};
      kube::ContainerStatus status;
      status.name = name;
      status.size = {k_small_amount, k_small_amount};
      pod.statuses.push_back(status);
    }
    if (serves) pod.payload_size = kube::Size{k_pod_amount, k_pod_amount};
    show();
    resizes.begin(pod, earlier_until);
    request.slot_size = k_slot_amount;
  }
  // The status shows what the spec says.
  void show() {
    for (std::size_t i = 0; i < 2; ++i) {
      pod.statuses[i].size = pod.containers[i].size;
      containers[i].status = pod.statuses[i];
    }
  }
  // The first container is to get its job's size; no glue has answered yet.
  void start() {
    REQUIRE(resizes.fit_of(containers[0], request) == Resizes::Fit::resize);
    Switching step;
    step.leg = Switching::Leg::size;
    containers[0].state = step;
    resizes.start(containers[0], k_slot_amount, k_resized_at);
  }
  void answer(std::int64_t kib = 1000) {
    for (std::size_t i = 0; i < 2; ++i) CHECK(resizes.take_used(containers[i], {i + 1, kib}));
  }
  void take(const Resize& resize) {
    for (const auto& change : resize.changes)
      for (auto& container : pod.containers)
        if (container.name == change.container) container.size = change.size;
    ++pod.generation;
    resizes.taken(resize.attempt, pod);
    resizes.see(pod);
  }
  template <typename T>
  std::vector<T> told() {
    return taken<T>(actions);
  }

  Policy policy = resizing_policy();
  Actions actions;
  Containers containers{actions, {}};
  kube::Pod pod;
  Resizes resizes{policy, containers, actions};
  Request request;
};

kube::Failure api_failure(int status) {
  kube::Failure failure;
  failure.kind = status == 0 ? kube::Failure::Kind::transport : kube::Failure::Kind::status;
  failure.status = status;
  failure.message = "no";
  return failure;
}

}  // namespace

TEST_CASE("resizes: a container gets its slot's size once the glues have said what is in use") {
  SizedContainers world;
  world.start();
  CHECK(world.told<SendBeat>().size() == 2);
  CHECK(world.resizes.under_way());
  CHECK_FALSE(world.resizes.go_on(k_resized_at));
  CHECK_FALSE(world.resizes.take_used(world.containers[0], {2, 1000}));  // the other container's question
  world.answer();
  CHECK_FALSE(world.resizes.go_on(k_resized_at));
  const auto asked = world.told<Resize>();
  REQUIRE(asked.size() == 1);
  CHECK(asked.front().changes.front().container == "payload-0");
  CHECK(asked.front().changes.front().size.limit == k_slot_amount);
  CHECK_FALSE(world.resizes.check(k_resized_at));
  world.take(asked.front());
  CHECK(world.resizes.awaits_status());
  CHECK_FALSE(world.resizes.check(k_resized_at));
  world.show();
  const auto end = world.resizes.check(k_resized_at);
  REQUIRE(end);
  CHECK(end->container == "payload-0");
  CHECK(end->trouble.empty());
  CHECK_FALSE(world.resizes.under_way());
  CHECK_FALSE(world.resizes.next_deadline());
  world.containers[0].state = Idle{};
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::fits);
}

TEST_CASE("resizes: a container that the pod does not name has no limit that is known") {
  SizedContainers world;
  world.containers.add("payload-9");
  world.resizes.begin(world.pod, std::nullopt);
  CHECK(world.containers[1].memory_limit_kib == k_small_amount.memory / 1024);
  CHECK(world.containers[2].memory_limit_kib == 0);
}

TEST_CASE("resizes: a container fits as it is where sizes are off, or nobody knows the slot's") {
  SizedContainers world;
  SUBCASE("by the policy") {
    world.policy.resize = false;
  }
  SUBCASE("the slot's is not known") {
    world.request.slot_size = {};
  }
  SUBCASE("a probe") {
    world.request.any_image = true;
  }
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::fits);
}

TEST_CASE("resizes: a pod that does not say what it has is told of once, and its sizes are enough") {
  SizedContainers world(false);
  const auto notes = world.told<Note>();
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().text.starts_with("event=resize_off"));
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::fits);
  // Somebody has made it smaller than the pod was made.
  world.containers[0].size.limit.memory /= 2;
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::too_small);
}

TEST_CASE("resizes: a job's own glue that does not answer is deaf, another one costs time alone") {
  SizedContainers world;
  world.start();
  CHECK(world.resizes.next_deadline() == k_resized_at + world.policy.resize_patience / 3);
  bool deaf = false;
  SUBCASE("its own") {
    deaf = true;
  }
  SUBCASE("another") {
    CHECK(world.resizes.take_used(world.containers[0], {1, 1000}));
  }
  SUBCASE("its own is gone") {
    world.resizes.glue_gone("payload-0");
  }
  const auto end = world.resizes.check(k_resized_at + world.policy.resize_patience / 3);
  CHECK(end.has_value() == deaf);
  if (end) CHECK(end->deaf);
  CHECK(world.resizes.under_way() != deaf);
}

TEST_CASE("resizes: a refusal changes nothing, and one for good is the last question") {
  SizedContainers world;
  world.start();
  world.answer();
  world.resizes.go_on(k_resized_at);
  const std::uint64_t attempt = world.told<Resize>().front().attempt;
  CHECK_FALSE(world.resizes.refused(attempt + 1, api_failure(409), k_resized_at));
  CHECK(world.containers[0].asked_memory == k_gib_each);
  const auto end = world.resizes.refused(attempt, api_failure(404), k_resized_at);
  REQUIRE(end);
  CHECK_FALSE(end->trouble.empty());
  CHECK(world.containers[0].asked_memory == 0);
  CHECK_FALSE(world.resizes.next_deadline());
  world.containers[0].state = Idle{};
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::fits);
  CHECK(world.told<Note>().size() == 1);  // resize_off says it all
}

TEST_CASE("resizes: one that may still happen is waited for, until the status shows that none is pending") {
  SizedContainers world;
  world.start();
  world.answer();
  world.resizes.go_on(k_resized_at);
  const Resize asked = world.told<Resize>().front();
  world.take(asked);
  SUBCASE("the kubelet is late") {
    CHECK(world.resizes.check(k_resized_at + world.policy.resize_patience)
              ->trouble.starts_with("the kubelet has not"));
  }
  SUBCASE("the request is gone") {
    world.resizes.leave("payload-1", k_resized_at);
    CHECK(world.resizes.under_way());
    world.resizes.leave("payload-0", k_resized_at);
  }
  CHECK_FALSE(world.resizes.under_way());
  REQUIRE(world.resizes.next_deadline());
  world.containers[0].state = Idle{};
  world.request.slot_size = k_small_amount;
  world.containers[0].made_memory = 0;
  world.containers[0].asked_memory = k_gib_each / 2;
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::wait);
  world.resizes.check_left(k_resized_at + 20s);
  CHECK(world.resizes.awaits_status());
  world.show();
  world.resizes.check_left(k_resized_at + 20s);
  CHECK_FALSE(world.resizes.awaits_status());
  CHECK(world.containers[0].asked_memory == 0);
}

TEST_CASE("resizes: the kubelet may say that it cannot, and only of the question that it means") {
  SizedContainers world;
  world.start();
  world.answer();
  world.resizes.go_on(k_resized_at);
  world.take(world.told<Resize>().front());
  world.pod.pending_resize = kube::Pod::PendingResize{"Infeasible", 99};
  world.resizes.see(world.pod);
  CHECK_FALSE(world.resizes.check(k_resized_at));
  world.pod.pending_resize->generation = world.pod.generation;
  world.resizes.see(world.pod);
  CHECK(world.resizes.check(k_resized_at)->trouble == "the kubelet says that the resize is Infeasible");
}

TEST_CASE("resizes: what an earlier agent has asked for may still happen, until its time is over") {
  SizedContainers world(true, k_resized_at + 90s);
  CHECK(world.resizes.next_deadline() == k_resized_at + 90s);
  CHECK(world.containers[0].made_memory == 0);
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::wait);
  world.resizes.check_left(k_resized_at + 89s);
  CHECK(world.resizes.awaits_status());
  world.resizes.check_left(k_resized_at + 90s);
  CHECK_FALSE(world.resizes.awaits_status());
  CHECK(world.resizes.fit_of(world.containers[0], world.request) == Resizes::Fit::resize);
}
