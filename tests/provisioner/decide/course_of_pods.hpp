#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// What becomes of some pods of one group from cycle to cycle, and what is decided of it: tracker and decide()
// together, in simulated time.
struct CourseOfPods {
  Tracker tracker;
  History history;
  Policy policy;
  Demand demand;
  std::vector<Pod> pods;
  std::vector<Slot> slots;
  Time now{Seconds(1'000'000)};

  CourseOfPods() {
    policy.image = "img";
    demand.groups[Group{}].idle = 400;
    demand.groups[Group{}].owners["alice"] = 400;
  }
  Pod& add(std::string name, std::string node, PodState state = PodState::unregistered) {
    auto& pod = pods.emplace_back(Pod{std::move(name), Group{}, "img", state, now});
    pod.node = std::move(node);
    return pod;
  }
  void joins(const std::string& name) { slots.push_back({name, false, ""}); }
  void claimed(const std::string& name, const std::string& node) {
    add(name, node);
    slots.push_back({name, true, "alice"});
  }
  void ends(const std::string& name, PodEnd end = PodEnd::own, PodState state = PodState::failed) {
    const auto pod = std::find_if(pods.begin(), pods.end(), [&](const Pod& p) { return p.name == name; });
    pod->state = state;
    pod->end = end;
    pod->since = now;
    std::erase_if(slots, [&](const Slot& slot) { return slot.pod == name; });
  }
  Plan step(Seconds later = Seconds(60)) {
    now += later;
    auto supply = tracker.observe(pods, slots, policy.settings, policy.image, now);
    auto plan = decide(demand, supply, {}, policy, now, history);
    history = plan.history;
    return plan;
  }
};

}  // namespace glidepod::provisioner
