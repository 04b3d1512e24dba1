#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "provisioner/decide/decide.hpp"
#include "provisioner/demand/pilot_ad.hpp"
#include "provisioner/settings/ini.hpp"

namespace glidepod::provisioner {

// Jobs of one group that come during a simulation.
struct JobStream {
  Group group;
  std::string owner = "user";
  Seconds start{0}, until{0};  // when they come; until 0: to the end
  std::int64_t burst = 0;      // at the start, at once
  double per_hour = 0;         // then evenly
  Seconds runtime{1800};       // mean; exponential
  bool fits = true;            // no: no node holds a pod for them
  Seconds leave{0};            // those that wait leave the queue; 0: never
  std::string requirements =
      {};  // as a job's ad has them; pilots that do not meet them take none of these jobs
};

// How pods fare in the simulated cluster and pool. Times are means of what is drawn evenly from half to one
// and a half of them.
struct Model {
  Seconds scheduling{5}, pull{60}, registration{45}, negotiation{60};
  Seconds idle_limit{1200};  // a pilot without a job ends
  Seconds lifetime{0};       // a pilot takes no more jobs; 0: none
  std::int64_t room = 0;     // pods the cluster holds; 0: any number
  double pull_failures = 0;  // share of pulls that fail, to be tried again every five minutes
  double silent = 0;         // share of pilots that never register; they end after an hour
  Seconds pulls_fail_from{0}, pulls_fail_until{0};  // every pull fails
  Seconds blind_from{0}, blind_until{0};            // the pool cannot be asked
  std::uint64_t seed = 1;
};

// A named place: its share of the cluster, and when its API does not answer; what runs there goes on.
struct ModelPlace {
  std::int64_t room = 0;  // pods it holds; 0: any number
  Seconds down_from{0}, down_until{0};
};

// Nodes alike. Of each size 0: any. Times are means: each node goes down (its pods are gone, their jobs wait
// again) or breaks the pilots that start there by itself, every so often and for so long; 0: never.
struct NodeKind {
  std::string name;
  std::int64_t count = 1, cpus = 0, memory_mb = 0, pods = 110;
  Seconds down_every{0}, down_for{600}, breaks_every{0}, breaks_for{1800};
};

struct Scenario {
  Seconds length{86400}, cycle{120};
  Model model;
  std::vector<NodeKind> nodes;  // none: room alone
  Policy policy;
  PilotAttributes pilots{.known = true, .more = {}};  // what the provisioner knows of pilots' ads
  std::vector<ModelPlace> places;  // as policy.places has them; none: there is one, with the model's room
  std::vector<JobStream> streams;
};

// The state after one cycle; sums are since the start.
struct Sample {
  Seconds at{0};
  std::int64_t idle = 0, running = 0, done = 0;
  std::int64_t waiting = 0, unmatched = 0, claimed = 0, broken = 0;
  std::int64_t submitted = 0, wasted_pods = 0;
  double used_hours = 0, idle_hours = 0;           // of registered pods, with and without a job
  std::int64_t hungry_least = 0, hungry_most = 0;  // pods with a job of one owner whose jobs wait
};

// Runs the scenario with the same decide() as the real thing; on_plan sees each cycle before it is carried
// out. The same scenario gives the same samples on every machine.
using OnPlan = std::function<void(const Demand&, const Supply&, const Plan&)>;
std::vector<Sample> simulate(const Scenario& scenario, const OnPlan& on_plan = {});

// A scenario file: [scenario] (length, cycle), [model], [policy] (any curb, cap or breaker key of [glidepod],
// and max_pods_per_cluster, max_submit_pods_per_cluster), [jobs NAME] for one stream or many alike, and one
// [nodes NAME] a kind of nodes or, where there are several places, one [place NAME] a place.
Result<Scenario> parse_scenario(const Ini& ini);

// Words for the keys of a scenario file.
std::string describe_scenario();

}  // namespace glidepod::provisioner
