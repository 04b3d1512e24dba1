#include <algorithm>
#include <optional>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using Json = nlohmann::json;
using Weight = Finding::Weight;
using Who = Finding::Who;

bool is_led(const LeaseLook& lease) {
  // Its holder renews it every 5 s, and another may take it after 30.
  constexpr Seconds k_lost{60};
  return !lease.holder.empty() && lease.age && *lease.age <= k_lost;
}

// The leader's last cycle is there, and not one of long ago.
bool is_fresh(const Scene& scene) {
  const bool of_another = is_led(scene.lease) && !scene.lease.here;
  return scene.status.is_object() && !of_another && !long_past(scene.status, scene.now);
}

// What was decided for the job's group, by whom it is known best.
struct Ruling {
  struct Told {
    Rule rule;
    bool of_place;
    std::string text;
  };
  std::string verdict;
  std::vector<Told> steps;
};

// Of the running instance; none where it has decided nothing for the group. Rules of a later version are
// passed over.
std::optional<Ruling> told_by_status(const Scene& scene) {
  if (!is_fresh(scene)) return std::nullopt;
  for (const auto& decision : scene.status.value("decisions", Json::array())) {
    if (decision.value("group", Json()) != group_json(scene.group.value())) continue;
    Ruling ruling{decision.at("verdict"), {}};
    for (const auto& step : decision.at("steps"))
      if (const auto rule = rule_named(text_view(step, "key")))
        ruling.steps.push_back({*rule, step.contains("place"), text_of(step, "text")});
    return ruling;
  }
  return std::nullopt;
}

Ruling ruling_of(const Scene& scene) {
  if (auto told = told_by_status(scene)) return *std::move(told);
  Ruling ruling;
  const auto decided = std::ranges::find(scene.plan.decisions, scene.group.value(), &Decision::group);
  if (decided == scene.plan.decisions.end()) return ruling;
  ruling.verdict = to_string(decided->verdict);
  for (const auto& step : decided->steps)
    ruling.steps.push_back({step.rule, !step.place.empty(), text(step)});
  return ruling;
}

std::string amount_text(std::int64_t amount, const std::string& text) {
  return amount < k_unlimited ? text : "any";
}

std::string size_text(const Resources& size) {
  const auto gib = [](std::int64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 30));
  };
  auto result = fmt::format("{:g} CPUs, {} GiB memory, {} GiB disk, {} GPUs",
                            static_cast<double>(size.cpu_milli) / 1000, gib(size.memory_bytes),
                            amount_text(size.disk_bytes, gib(size.disk_bytes)),
                            amount_text(size.gpus, std::to_string(size.gpus)));
  for (const auto& [name, number] : size.devices)
    result += fmt::format(", {} {}", amount_text(number, std::to_string(number)), name);
  return result;
}

// What a pod of the group asks for, and of the nodes the one with the most memory.
std::string sizes_of(const Scene& scene) {
  const auto& capacity = scene.seen.capacity;
  const auto need = capacity.needs.find(scene.group.value());
  if (need == capacity.needs.end()) return {};
  auto result = fmt::format("; its pod asks for {}", size_text(need->second));
  const auto largest = std::ranges::max_element(capacity.nodes, {}, &Resources::memory_bytes);
  if (largest != capacity.nodes.end())
    result += fmt::format("; the largest node has {}", size_text(*largest));
  return result;
}

// What a rule that can leave a group without pods means for its job; nothing where it cannot. seen is what
// the step does not say itself.
std::optional<Finding> of_rule(Rule rule, const Scene& scene) {
  constexpr auto* k_end_or_raise = "raise it, or wait for pods to end";
  constexpr auto* k_mend_cluster = "mend that cluster, its token or the way there";
  const auto cap = [](std::string what) {
    return Finding{Weight::stops, "cap", std::move(what), {}, k_end_or_raise, Who::pool_operator};
  };
  const auto curb = [](std::string what) {
    return Finding{Weight::waits, "curb", std::move(what), {}, "wait for the next cycle; or raise it"};
  };
  switch (rule) {
    case Rule::law:
    case Rule::no_jobs:
    case Rule::no_node:
    case Rule::waiting:
    case Rule::without_node:
    case Rule::free_room_overdue:
    case Rule::places:
    case Rule::placed:
      break;
    case Rule::waste:
      return Finding{Weight::note,
                     "waste",
                     "fewer pilots are made, since others ended without a job",
                     {},
                     "condor_q -better-analyze of a job of this size: what do they require?",
                     Who::pool_operator};
    case Rule::free_room:
      return Finding{Weight::waits, "running-pods",
                     "running pods have room for jobs of its size, so that fewer are made",
                     last_rejection(scene.job.ad),
                     fmt::format("wait for the negotiator; after {} s pods are made all the same",
                                 scene.policy.free_capacity_limit.count())};
    case Rule::node_size:
    case Rule::quota_size:
      return Finding{Weight::stops,
                     "too-large",
                     "no pod of its size can ever be made",
                     sizes_of(scene),
                     "a smaller request; or a larger node or quota",
                     Who::owner};
    case Rule::not_made:
      return Finding{Weight::stops,
                     "unservable",
                     "the settings cannot make a pod for it",
                     {},
                     "correct them, or what the job asks for",
                     Who::pool_operator};
    case Rule::breaker_opens:
    case Rule::breaker_waits:
    case Rule::breaker_pauses:
    case Rule::breaker_tries:
      return Finding{Weight::stops,
                     "breaker",
                     "pilots of its size have failed, so one at a time is tried",
                     {},
                     "mend the pilot's image or the pool (docs/troubles.md); the first that joins ends it",
                     Who::pool_operator};
    case Rule::refused:
      return Finding{Weight::stops,
                     "pod-refused",
                     "the cluster's API has refused its pod, and is asked again after a pause",
                     {},
                     "mend what the server's words say",
                     Who::pool_operator};
    case Rule::quota_refused:
      return Finding{Weight::stops,
                     "quota",
                     "the cluster's API has refused its pod for a quota",
                     {},
                     "a higher ResourceQuota, or wait for pods to end",
                     Who::site_admin};
    case Rule::drained:
      return Finding{Weight::stops,
                     "drained",
                     "an operator has taken its size of pods, or a cluster, out of use",
                     {},
                     "provisioner undrain, once the reason is gone",
                     Who::pool_operator};
    case Rule::drained_nodes:
      return Finding{Weight::note,
                     "node-drained",
                     "an operator has taken nodes out of use",
                     {},
                     "provisioner undrain, once the reason is gone",
                     Who::pool_operator};
    case Rule::unseen:
      return Finding{Weight::stops,
                     "place-unseen",
                     "the API of a cluster does not answer, so that cluster gets no pods",
                     {},
                     k_mend_cluster,
                     Who::pool_operator};
    case Rule::waits_for_unseen:
      return Finding{
          Weight::waits,
          "place-unseen",
          "a cluster has not been seen since the provisioner's start, and may have pods for the job",
          {},
          fmt::format("{}; after outage_shift others get pods all the same", k_mend_cluster),
          Who::pool_operator};
    case Rule::quota:
      return Finding{Weight::stops,
                     "quota",
                     "the quota of the pilots' namespace is used up",
                     {},
                     "a higher ResourceQuota, or wait for pods to end",
                     Who::site_admin};
    case Rule::group_quota:
      return Finding{
          Weight::stops,
          "quota",
          "the quota of its accounting group in the pool is used up",
          {},
          "a higher GROUP_QUOTA of the pool, GROUP_ACCEPT_SURPLUS, or wait for the group's jobs to "
          "end",
          Who::pool_operator};
    case Rule::priorities:
      return Finding{
          Weight::note,
          "priority",
          "others have a better priority in the pool, so they get more of the pods",
          {},
          "wait: the pool forgets usage by half in PRIORITY_HALFLIFE; or condor_userprio -setfactor",
          Who::pool_operator};
    case Rule::max_pods_per_owner:
      return cap("its owner has as many pods as one owner may have");
    case Rule::max_submit_pods_per_cluster:
    case Rule::max_pods_per_group:
      return cap("there are as many pods of its size as are allowed");
    case Rule::max_pods_per_cluster:
      return Finding{Weight::waits,  "enough",          "as many pods of its size wait as are allowed", {},
                     k_end_or_raise, Who::pool_operator};
    case Rule::max_running_per_group:
      return cap("as many pods of its size run as are allowed");
    case Rule::max_idle_per_group:
      return cap("as many pods of its size wait as are allowed");
    case Rule::max_pods:
      return cap("there are as many pods as are allowed");
    case Rule::max_cores:
      return cap("the pods have as many cores as are allowed, or all but fewer than one of its size has");
    case Rule::max_running:
      return cap("as many pods run as are allowed");
    case Rule::max_idle:
      return cap("as many pods wait as are allowed, over all sizes");
    case Rule::negotiator:
      return Finding{Weight::stops,
                     "pool-policy",
                     "the pool's negotiator would use few pods of its size, or none",
                     {},
                     "quotas and limits of the pool (condor_userprio -quotas -allusers), and what the job "
                     "requires of its slot (condor_q -better-analyze)",
                     Who::pool_operator};
    case Rule::negotiation:
      return Finding{Weight::waits,
                     "pool-asked",
                     "the pool's negotiator has not said yet whether it would use pods of its size",
                     {},
                     "wait for its next cycle; where that is always so: problems of `provisioner status`"};
    case Rule::first_pilot:
      return Finding{Weight::waits,
                     "first-pilot",
                     "one pilot at a time, until the first has joined and its ad is known",
                     {},
                     "wait for it"};
    case Rule::avoids:
      return Finding{Weight::note,
                     "node-avoided",
                     "nodes on which pilots have failed get no pods for a while",
                     {},
                     "look at these nodes; the first pilot that works there ends it",
                     Who::site_admin};
    case Rule::ramp_up_per_group:
      return curb("only so many pods of its size are made in one cycle");
    case Rule::ramp_up:
      return curb("only so many pods are made in one cycle");
  }
  return std::nullopt;
}

void add_rules(const Scene& scene, const Ruling& ruling, bool coming, std::vector<Finding>& result) {
  const bool submits = ruling.verdict == to_string(Decision::Verdict::submit);
  for (const auto& [rule, of_place, text] : ruling.steps) {
    auto finding = of_rule(rule, scene);
    if (!finding) continue;
    finding->seen = text + finding->seen;
    // Where one place takes no more pods others may.
    if (coming || (of_place && submits)) finding->weight = Weight::note;
    result.push_back(*std::move(finding));
  }
}

// Pods of its group that the API refused, as the running instance tells.
void add_refusals(const Scene& scene, bool coming, std::vector<Finding>& result) {
  if (!is_fresh(scene)) return;
  const auto hash = scene.group.value().hash();
  for (const auto& unmade : member(scene.status, "unmade")) {
    if (text_view(unmade, "group_hash") != hash) continue;
    const bool quota = member(unmade, "by_quota") == true;
    result.push_back(
        {coming ? Weight::note : Weight::stops, quota ? "quota" : "pod-refused",
         quota ? "the quota of the pilots' namespace is used up" : "its pod could not be made",
         one_line(text_of(unmade, "why"), 500),
         quota ? "a higher ResourceQuota, or wait for pods to end" : "mend what the server's words say",
         quota ? Who::site_admin : Who::pool_operator});
    return;
  }
}

// Where nobody leads: how that is seen. Else nothing.
std::string leaderless(const Scene& scene) {
  const auto& lease = scene.lease;
  if (!lease.name.empty() && lease.failure.empty()) {
    if (is_led(lease)) return {};
    if (lease.holder.empty() || !lease.age) return fmt::format("nobody has the lease {}", lease.name);
    return fmt::format("{} has not renewed the lease {} for {} s", one_line(lease.holder, 200), lease.name,
                       lease.age->count());
  }
  if (!scene.status.is_object() || is_fresh(scene)) return {};
  return fmt::format("the last cycle in {} was {} s ago", scene.status_file,
                     long_past(scene.status, scene.now)->count());
}

void add_leader(const Scene& scene, std::vector<Finding>& result) {
  if (auto seen = leaderless(scene); !seen.empty()) {
    result.push_back({Weight::stops, "no-leader", "no provisioner leads", std::move(seen),
                      "start the provisioner, or ask where it runs", Who::pool_operator});
    return;
  }
  if (is_fresh(scene)) return;
  result.push_back(
      {Weight::note, "no-status",
       scene.recalled ? "whether the running instance's pods are refused is not known here"
                      : "what the running instance remembers (breakers, refusals) is not known here",
       is_led(scene.lease) ? one_line(scene.lease.holder, 200) + " leads"
                           : fmt::format("{} is not there {}", scene.status_file, scene.lease.failure),
       "ask where the leader runs", Who::pool_operator});
}

std::optional<std::string> blindness(const Scene& scene) {
  if (scene.plan.blind || !is_fresh(scene)) return scene.plan.blind;
  const auto told = scene.status.value("blind", "");
  return told.empty() ? std::nullopt : std::optional(told);
}

}  // namespace

std::vector<Finding> of_decision(const Scene& scene, bool coming) {
  std::vector<Finding> result;
  add_leader(scene, result);
  if (const auto blind = blindness(scene)) {
    result.push_back({Weight::stops, "blind",
                      "nothing is decided while the pool or the cluster cannot be seen", *blind,
                      "mend what does not answer", Who::pool_operator});
    return result;
  }
  const auto& demand = scene.seen.demand;
  if (const auto silent = demand.silent.find(scene.job.schedds.front()); silent != demand.silent.end())
    result.push_back({Weight::stops, "schedd-silent",
                      "its access point does not answer the question for demand", silent->second,
                      "the access point; schedd_time_limit", Who::pool_operator});
  add_rules(scene, ruling_of(scene), coming, result);
  add_refusals(scene, coming, result);
  return result;
}

}  // namespace glidepod::provisioner
