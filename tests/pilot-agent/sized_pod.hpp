#pragma once

// A pod whose containers get their jobs' sizes.

#include "tests/pilot-agent/core_harness.hpp"

namespace glidepod::agent {

using kube::Amount;
using kube::Size;

inline constexpr std::int64_t k_whole_gib = std::int64_t{1} << 30;
inline constexpr Amount k_all{4000, 4 * k_whole_gib}, k_half{2000, 2 * k_whole_gib},
    k_quarter{1000, k_whole_gib};

inline Policy sized() {
  Policy policy;
  policy.resize = true;
  return policy;
}

// A pod of two payload containers that share four CPUs and 4 GiB; each may have all.
struct Sized : Harness {
  explicit Sized(const Policy& policy = sized(), Core::Earlier earlier = Core::Earlier::none,
                 const Amount& limit = k_all)
      : Harness(2, policy, 0, earlier, [&limit](kube::Pod& made) {
          for (std::size_t i : {1U, 2U}) made.containers[i].size = made.statuses[i].size = {k_half, limit};
          made.payload_size = Size{k_all, {8000, 8 * k_whole_gib}};
        }) {
    slot_size = k_half;
  }
  // Bob's job has ended in the first container; the second one, made ready for others, is without a glue.
  void spare_begins() {
    slot_size = {};
    ask(k_image_a, wire::Verb::exec, "bob", 20002);
    switch_to(0, k_image_a, k_digest_a);
    REQUIRE(state(1) == State::switching);
    answer(last<Patch>(), {});
    goodbye(1);
    end_job(0);
    slot_size = k_half;
  }
  // Every glue that was asked says what it has in use.
  void used(std::int64_t kib = 1000) {
    const std::vector<Action> before = all;
    for (const Action& action : before)
      if (const auto* beat = std::get_if<SendBeat>(&action); beat != nullptr && beat->number > heard) {
        heard = beat->number;
        core.on_beat(beat->glue, {beat->number, kib}, now);
        take();
      }
  }
  // The API takes the newest question.
  void resize_taken() {
    const Resize question = last<Resize>();
    for (const auto& change : question.changes)
      for (auto& container : pod.containers)
        if (container.name == change.container) container.size = change.size;
    ++pod.generation;
    core.on_resized(question.attempt, pod, now);
    take();
  }
  // The kubelet shows what the pod says.
  void in_force() {
    for (std::size_t i : {1U, 2U}) pod.statuses[i].size = pod.containers[i].size;
    tell();
  }
  void resize_failed(int status) {
    kube::Failure failure;
    failure.kind = status == 0 ? kube::Failure::Kind::transport : kube::Failure::Kind::status;
    failure.status = status;
    failure.message = "no";
    core.on_resized(last<Resize>().attempt, failure.to_error(), now);
    take();
  }
  Size size_asked(int i) const {
    for (const auto& change : last<Resize>().changes)
      if (change.container == name(i)) return change.size;
    return {};
  }
  // A job of the slot's size is in container 0, with image A.
  void first_job() {
    ask(k_image_a);
    used();
    resize_taken();
    in_force();
    switch_to(0, k_image_a, k_digest_a);
  }
  // After an earlier agent: at home, and settled.
  void come_home() {
    for (int i = 0; i < 2; ++i) {
      patched_attempt(static_cast<std::uint64_t>(i) + 1);
      goodbye(i);
      hello(i);
      runs_home(i);
    }
    pass(90s);
  }
  std::uint64_t heard = 0;
};

}  // namespace glidepod::agent
