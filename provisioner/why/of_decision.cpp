#include <algorithm>
#include <optional>

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
  std::string verdict;
  std::vector<std::string> steps;
};

Ruling ruling_of(const Scene& scene) {
  const auto plan = report(scene.seen, scene.plan, nullptr);
  for (const auto* cycle : {&scene.status, &plan}) {
    if (cycle == &scene.status && !is_fresh(scene)) continue;
    for (const auto& decision : cycle->value("decisions", Json::array())) {
      if (decision.value("group", Json()) != group_json(scene.group.value())) continue;
      return {decision.at("verdict"), decision.at("steps").get<std::vector<std::string>>()};
    }
  }
  return {};
}

// A rule of decide() that can leave a group without pods, by the first word of its step.
struct Rule {
  std::string_view word, key, what, change;
  Who who;
  Weight weight = Weight::stops;
};
constexpr std::string_view k_end_or_raise = "raise it, or wait for pods to end";
constexpr Rule k_rules[] = {
    {"larger", "too-large", "no pod of its size can ever be made",
     "a smaller request; or a larger node or quota", Who::owner},
    {"breaker", "breaker", "pilots of its size have failed, so one at a time is tried",
     "mend the pilot's image or the pool (docs/troubles.md); the first that joins "
     "ends it",
     Who::pool_operator},
    {"refused", "pod-refused", "the cluster's API has refused its pod, and is asked again after a pause",
     "mend what the server's words say", Who::pool_operator},
    {"quota_refused", "quota", "the cluster's API has refused its pod for a quota",
     "a higher ResourceQuota, or wait for pods to end", Who::site_admin},
    {"unseen", "place-unseen", "the API of a cluster does not answer, so it gets no pods",
     "mend that cluster, its token or the way there", Who::pool_operator},
    {"waits", "place-unseen", "a cluster has not been seen since the start, and may have pods for it",
     "mend that cluster, its token or the way there; after outage_shift others get pods all the same",
     Who::pool_operator, Weight::waits},
    {"quota", "quota", "the quota of the pilots' namespace is used up",
     "a higher ResourceQuota, or wait for pods to end", Who::site_admin},
    {"group_quota", "quota", "the quota of its accounting group in the pool is used up",
     "a higher GROUP_QUOTA of the pool, GROUP_ACCEPT_SURPLUS, or wait for the group's jobs to end",
     Who::pool_operator},
    {"priorities", "priority", "others have a better priority in the pool, so they get more of the pods",
     "wait: the pool forgets usage by half in PRIORITY_HALFLIFE; or condor_userprio -setfactor",
     Who::pool_operator, Weight::note},
    {"max_pods_per_owner", "cap", "its owner has as many pods as one owner may have", k_end_or_raise,
     Who::pool_operator},
    {"max_submit_pods_per_cluster", "cap", "there are as many pods of its size as are allowed",
     k_end_or_raise, Who::pool_operator},
    {"max_pods_per_cluster", "enough", "as many pods of its size wait as are allowed", k_end_or_raise,
     Who::pool_operator, Weight::waits},
    {"max_pods_per_group", "cap", "there are as many pods of its size as are allowed", k_end_or_raise,
     Who::pool_operator},
    {"max_running_per_group", "cap", "as many pods of its size run as are allowed", k_end_or_raise,
     Who::pool_operator},
    {"max_idle_per_group", "cap", "as many pods of its size wait as are allowed", k_end_or_raise,
     Who::pool_operator},
    {"max_pods", "cap", "there are as many pods as are allowed", k_end_or_raise, Who::pool_operator},
    {"max_running", "cap", "as many pods run as are allowed", k_end_or_raise, Who::pool_operator},
    {"max_idle", "cap", "as many pods wait as are allowed, over all sizes", k_end_or_raise,
     Who::pool_operator},
    {"negotiator", "pool-policy", "the pool's negotiator would use few pods of its size, or none",
     "quotas and limits of the pool (condor_userprio -quotas -allusers), and what the job requires of its "
     "slot "
     "(condor_q -better-analyze)",
     Who::pool_operator},
    {"negotiation", "pool-asked",
     "the pool's negotiator has not said yet whether it would use pods of its size",
     "wait for its next cycle; where that is always so: problems of `provisioner status`", Who::nobody,
     Weight::waits},
    {"offers", "first-pilot", "one pilot at a time, until the first has joined and its ad is known",
     "wait for it", Who::nobody, Weight::waits},
    {"avoids", "node-avoided", "nodes on which pilots have failed get none for a while",
     "look at these nodes; the first pilot that works there ends it", Who::site_admin, Weight::note},
    {"ramp_up_per_group", "curb", "only so many pods of its size are made in one cycle",
     "wait for the next; or raise it", Who::nobody, Weight::waits},
    {"ramp_up", "curb", "only so many pods are made in one cycle", "wait for the next; or raise it",
     Who::nobody, Weight::waits},
};

std::string amount_text(std::int64_t amount, const std::string& text) {
  return amount < k_unlimited ? text : "any";
}

std::string size_text(const Resources& size) {
  const auto gib = [](std::int64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 30));
  };
  return fmt::format("{:g} CPUs, {} GiB memory, {} GiB disk, {} GPUs",
                     static_cast<double>(size.cpu_milli) / 1000, gib(size.memory_bytes),
                     amount_text(size.disk_bytes, gib(size.disk_bytes)),
                     amount_text(size.gpus, std::to_string(size.gpus)));
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

// By its first word, or that behind the name of a place; nullptr where it is none.
const Rule* rule_of(std::string_view step) {
  for (int part = 0; part < 2; ++part) {
    const auto word = step.substr(0, step.find_first_of(": "));
    const auto* rule = std::ranges::find(k_rules, word, &Rule::word);
    if (rule != std::end(k_rules)) return rule;
    const auto colon = step.find(": ");
    if (colon == std::string_view::npos) break;
    step.remove_prefix(colon + 2);
  }
  return nullptr;
}

void add_rules(const Scene& scene, const Ruling& ruling, bool coming, std::vector<Finding>& result) {
  for (const auto& step : ruling.steps) {
    const auto* rule = rule_of(step);
    const auto word = rule ? rule->word : std::string_view();
    // Where one place takes no more pods others may.
    const bool of_place = rule && !step.starts_with(word) && ruling.verdict == "submit";
    if (rule)
      result.push_back({coming || of_place ? Weight::note : rule->weight, std::string(rule->key),
                        std::string(rule->what), word == "larger" ? step + sizes_of(scene) : step,
                        std::string(rule->change), rule->who});
    else if (ruling.verdict == "unservable")
      result.push_back({Weight::stops, "unservable", "the settings cannot make a pod for it", step,
                        "correct them, or what the job asks for", Who::pool_operator});
    else if (step.find("idle jobs fit into running pods") != std::string::npos)
      result.push_back({coming ? Weight::note : Weight::waits, "running-pods",
                        "running pods have room for jobs of its size, so that fewer are made",
                        step + last_rejection(scene.job.ad),
                        fmt::format("wait for the negotiator; after {} s pods are made all the same",
                                    scene.policy.free_capacity_limit.count()),
                        Who::nobody});
    else if (step.find("pilots wasted") != std::string::npos)
      result.push_back({Weight::note, "waste", "fewer pilots are made, since others ended without a job",
                        step, "condor_q -better-analyze of a job of this size: what do they require?",
                        Who::pool_operator});
  }
}

// Pods of its group that the API refused, as the running instance tells.
void add_refusals(const Scene& scene, bool coming, std::vector<Finding>& result) {
  if (!is_fresh(scene)) return;
  const auto mark = fmt::format("-{}-", scene.group.value().hash());
  for (const auto& problem : scene.status.value("problems", Json::array())) {
    const auto text = problem.is_string() ? problem.get<std::string>() : "";
    if (!text.starts_with("make ") || text.find(mark) == std::string::npos) continue;
    const bool quota = text.find("exceeded quota") != std::string::npos;
    result.push_back(
        {coming ? Weight::note : Weight::stops, quota ? "quota" : "pod-refused",
         quota ? "the quota of the pilots' namespace is used up" : "its pod could not be made",
         one_line(text, 500),
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
  const auto silent = std::ranges::find_if(demand.problems, [&](const auto& problem) {
    return problem.starts_with(scene.job.schedds.front() + ":");
  });
  if (demand.schedds_failed > 0 && silent != demand.problems.end())
    result.push_back({Weight::stops, "schedd-silent",
                      "its access point does not answer the question for demand", *silent,
                      "the access point; schedd_time_limit", Who::pool_operator});
  add_rules(scene, ruling_of(scene), coming, result);
  add_refusals(scene, coming, result);
  return result;
}

}  // namespace glidepod::provisioner
