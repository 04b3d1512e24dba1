#include "provisioner/simulate/simulate.hpp"

#include "provisioner/simulate/world.hpp"

namespace glidepod::provisioner {

std::vector<Sample> simulate(const Scenario& scenario, const OnPlan& on_plan) {
  World world(scenario);
  History history;
  std::vector<Sample> samples;
  for (Seconds now{0}; now <= scenario.length; now += scenario.cycle) {
    world.advance(now);
    const auto demand = world.demand();
    const auto& places = scenario.policy.places;
    const auto supply = places.empty() ? world.supply(scenario.policy.settings) : world.supply_of_places();
    auto plan = decide(demand, supply, {}, scenario.policy, Time(now), std::move(history));
    if (on_plan) on_plan(demand, supply, plan);
    if (!plan.blind) world.avoid(plan.avoid);
    for (const auto& decision : plan.decisions) {
      if (places.empty()) world.create(decision.group, decision.submit);
      for (std::size_t i = 0; i < decision.places.size(); ++i)
        world.create(decision.group, decision.places[i].submit, i);
    }
    for (const auto& removal : plan.removals) world.remove(removal.pod);
    history = std::move(plan.history);
    samples.push_back(world.sample(demand, supply));
  }
  return samples;
}

}  // namespace glidepod::provisioner
