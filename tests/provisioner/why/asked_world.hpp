#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "lib/condor/ad_stream.hpp"
#include "provisioner/decide/places.hpp"
#include "provisioner/demand/contract.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/why/findings.hpp"

// A pool with one job that somebody asks after.
namespace glidepod::provisioner::why_test {

using Json = nlohmann::json;

inline constexpr Time k_now{Seconds(1'000'000)};

// One idle job that pilots would take, in a quiet pool; a case changes what it is about.
struct World {
  Json job = {{"JobStatus", 1},
              {"JobUniverse", 5},
              {"Owner", "alice"},
              {"EnteredCurrentStatus", 999'000},
              {"ContainerImage", "docker://registry/image:1"},
              {"RequestCpus", 1},
              {"RequestMemory", 128},
              {"RequestDisk", 1000},
              {"Requirements", R"(/Expr((TARGET.Arch == "X86_64") && (TARGET.HasFileTransfer))/)"}};
  JobLook look;
  HtcondorSettings htcondor;
  std::string start, name_space;
  bool gpu_jobs_only = true;
  std::int64_t least_fill = 0;
  Seconds pod_lifetime{0};
  Policy policy;
  std::vector<Pod> pods;
  Group others;  // the group of pods that are not of the job's
  std::size_t first_of_others = 1000;
  std::vector<Slot> slots;
  Capacity capacity;
  std::map<std::string, PlaceSupply> places;
  std::optional<std::string> blind_demand, blind_pods;
  bool recalled = false;
  std::vector<std::string> demand_problems;
  std::int64_t others_idle = 0, schedds_failed = 0, bobs_idle = 0, wasted = 0;
  Priorities priorities;
  std::optional<Offers> offers;
  Seconds last_cycle{10};
  bool has_status = true;
  History history;
  std::string status_problem;
  LeaseLook lease;
  PilotAttributes pilots;

  World() {
    htcondor.force_namespace_matching = NamespaceMatching::no;
    policy.image = "img";
    look.where = JobLook::Where::queue;
    look.id = "12.0";
    look.schedds = {"ap"};
    look.counts = true;
    look.schedds_asked = 3;
  }
  void pod(PodState state, Seconds age = Seconds(30), std::string message = "") {
    Pod pod{fmt::format("pod-{}", pods.size()), {}, "img", state, k_now - age};
    pod.jobless = state <= PodState::starting;
    pod.message = std::move(message);
    pods.push_back(pod);
  }
};

// HTCondor's part: true or false of the job alone.
inline bool holds(const std::string& expression, const condor::Ad& job) {
  if (expression.find("unparse(RequireGPUs)") != std::string::npos)
    return job.written("RequireGPUs") == "undefined";
  if (!expression.starts_with("regexp(")) return job.evaluate_expression(expression).to_string() == "true";
  const auto special = job.evaluate("SingularityImage");
  const auto image = special.is(condor::Value::Type::string) ? special.text : job.text("ContainerImage");
  constexpr std::string_view before = "regexp(\"", after = "\", ";
  const auto pattern = expression.substr(before.size(), expression.find(after) - before.size());
  return std::regex_search(image, std::regex(pattern));
}

inline std::vector<Finding> ask(World world) {
  Scene scene;
  scene.now = k_now;
  scene.job = std::move(world.look);
  scene.job.ad = condor::ad_from_json(world.job.dump()).value();
  const auto taken = container_jobs("", false, world.pod_lifetime);
  const JobRules rules{query_parts(world.htcondor, "ns", CondorDemand::Namespace::matched, joined(taken)),
                       taken, world.start, world.name_space};
  scene.job.clauses = clauses_of(rules, scene.job.ad);
  for (auto& clause : scene.job.clauses)
    if (clause.of_job) clause.holds = holds(clause.expression, scene.job.ad);
  scene.group = group_of(scene.job.ad, world.policy.settings);
  if (scene.group) scene.unmet = unmet_by_pilots(scene.job.ad, scene.group.value(), world.pilots);
  scene.gpu_jobs_only = world.gpu_jobs_only;
  scene.least_fill = world.least_fill;
  scene.htcondor = world.htcondor;
  scene.policy = world.policy.settings;
  scene.status_file = "status.json";
  scene.lease = world.lease;
  scene.recalled = world.recalled;
  auto& seen = scene.seen;
  seen.at = k_now;
  seen.demand.blind = world.blind_demand;
  for (const auto& problem : world.demand_problems) seen.demand.silent["ap"] = problem;
  seen.demand.schedds_failed = world.schedds_failed;
  if (scene.group && world.schedds_failed == 0)
    seen.demand.groups[scene.group.value()] = {1 + world.others_idle, 0, {{"alice", 1 + world.others_idle}}};
  if (scene.group && world.offers) {
    auto& jobs = seen.demand.groups[scene.group.value()];
    jobs.offers = world.offers;
    if (world.offers->limits()) jobs.idle = world.offers->matched;
    if (world.offers->state == Offers::State::no_pilot) jobs.idle = 1;
  }
  if (world.bobs_idle > 0)
    seen.demand.groups[world.others] = {world.bobs_idle, 0, {{"bob", world.bobs_idle}}};
  seen.demand.priorities = world.priorities;
  Tracker tracker;
  if (scene.group)
    for (std::size_t i = 0; i < world.pods.size(); ++i)
      world.pods[i].group = i < world.first_of_others ? scene.group.value() : world.others;
  seen.supply = tracker.observe(world.pods, world.slots, world.policy.settings, "img", k_now);
  if (world.wasted > 0) seen.supply.groups[scene.group.value()].wasted = world.wasted;
  seen.supply.blind = world.blind_pods;
  seen.supply.places = world.places;
  seen.capacity = world.capacity;
  if (scene.group) seen.capacity.needs.try_emplace(scene.group.value(), Resources{1000, 4096, 0, 0, 1});
  scene.plan = decide(seen.demand, seen.supply, seen.capacity, world.policy, k_now, world.history);
  if (world.has_status) {
    const Applied applied{
        .unmade = {{Group(), world.status_problem.find("quota") != std::string::npos, world.status_problem}}};
    scene.status = report(seen, scene.plan, world.status_problem.empty() ? nullptr : &applied);
    scene.status["unix_time"] = (k_now - world.last_cycle).time_since_epoch().count();
    scene.status["sleep_time"] = 60;
  }
  return findings(scene);
}

struct Case {
  const char* name;
  std::function<void(World&)> provoke;
  const char *key, *weight, *who;
  const char* seen;  // part of the evidence
};

inline const Finding* find(const std::vector<Finding>& all, std::string_view key) {
  const auto found = std::ranges::find(all, key, &Finding::key);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace glidepod::provisioner::why_test
