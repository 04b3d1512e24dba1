#include "tests/simulate/weather.hpp"

namespace glidepod::simulate {

Weather::Weather(Random& random) {
  const auto some = [&random](int most) {
    return random.chance(300) ? static_cast<int>(random.between(1, most)) : 0;
  };
  containers = static_cast<int>(random.chance(500) ? 1 : random.between(2, 3));
  slots = static_cast<int>(random.between(1, containers + 1));
  images = static_cast<int>(random.between(2, 4));
  names_given = random.chance(300);
  mirror = random.chance(200);
  young_pod = random.chance(100);
  newest_spec = random.chance(200);
  many_names = random.chance(200);
  bare_ids = random.chance(100);
  ids_told = !random.chance(200);
  always_pull = random.chance(150);
  lively_reuse = random.chance(500);
  bad_images = random.chance(500) ? static_cast<int>(random.between(100, 500)) : 0;
  if (random.chance(200)) policy.reuse = agent::Policy::Reuse::never;
  if (random.chance(300)) policy.first = agent::Policy::First::prove;
  if (random.chance(700)) policy.give_up_after = 0;
  storm = std::chrono::seconds(random.between(20, 240));
  tags_move = random.chance(200);
  faults = random.chance(850);
  if (random.aside(6).chance(50)) policy.bind_deadline = std::chrono::seconds(random.aside(7).between(2, 30));
  if (random.aside(1).chance(50)) policy.pull_patience = std::chrono::seconds(700);
  Random beside = random.aside(9);
  policy.pullers = beside.chance(400);
  provisioner = policy.pullers && beside.chance(850);
  if (Random spare = random.aside(14); containers > 1 && spare.chance(400))
    policy.spares = static_cast<int>(spare.between(1, containers - 1));
  Random sizes = random.aside(15);
  policy.resize = sizes.chance(400);
  resize_served = policy.resize && sizes.chance(900);
  born_ready = containers > 1 && random.aside(16).chance(400);
  tags_dropped = ids_told && random.aside(20).chance(100);
  if (Random silent = random.aside(21); silent.chance(200))
    silent_streams = static_cast<int>(silent.between(100, 900));
  ends = random.aside(22).chance(150);
  home_names = random.aside(23).chance(150);
  announces = random.aside(29).chance(500);
  if (random.aside(30).chance(500)) policy.renewal_calm = std::chrono::seconds(0);
  pilot_jobs = containers > 1 && random.aside(19).chance(300);
  if (!faults) return;
  if (policy.resize && sizes.chance(600)) resize_astray = static_cast<int>(sizes.between(50, 900));
  if (policy.resize && sizes.chance(300)) residue = static_cast<int>(sizes.between(50, 500));
  if (provisioner && beside.chance(600)) pullers_astray = static_cast<int>(beside.between(50, 900));
  request_lost = some(300);
  answer_lost = some(300);
  late_effect = some(200);
  refused = some(200);
  busy = some(300);
  slow = some(300);
  late_status = some(500);
  pull_fails = some(500);
  vanishing = some(400);
  signals = some(300);
  clumsy_jobs = some(400);
  glue_dies = random.chance(250);
  out_of_memory = random.chance(250);
  stopped_outside = random.chance(250);
  agent_dies = random.chance(250);
  watch_cut = random.chance(250);
  api_down = random.chance(200);
  glue_wedged = random.chance(200);
  kubelet_restarts = random.chance(100);
  links_break = random.aside(5).chance(250);
  runtime_dies = random.aside(10).chance(50);
  drained = random.aside(12).chance(50);
  withdrawn = random.aside(27).chance(50);
}

}  // namespace glidepod::simulate
