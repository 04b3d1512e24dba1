#include <algorithm>

#include "lib/base/text.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using Json = nlohmann::json;
using Weight = Finding::Weight;
using Who = Finding::Who;

// What was decided for the job's group, by whom it is known best.
struct Ruling {
  std::string verdict;
  std::vector<std::string> steps;
  bool known = false;
};

Ruling ruling_of(const Scene& scene) {
  const auto plan = report(scene.seen, scene.plan, nullptr);
  for (const auto* cycle : {&scene.status, &plan}) {
    if (!cycle->is_object()) continue;
    for (const auto& decision : cycle->value("decisions", Json::array())) {
      if (decision.value("group", Json()) != group_json(scene.group.value())) continue;
      return {decision.at("verdict"), decision.at("steps").get<std::vector<std::string>>(), true};
    }
  }
  return {};
}

std::int64_t submit_of(const Scene& scene) {
  for (const auto& decision : scene.plan.decisions)
    if (decision.group == scene.group.value()) return decision.submit;
  return 0;
}

GroupSupply pods_of(const Scene& scene) {
  const auto found = scene.seen.supply.groups.find(scene.group.value());
  return found == scene.seen.supply.groups.end() ? GroupSupply{} : found->second;
}

std::int64_t count(const GroupSupply& pods, PodState state) {
  const auto found = pods.states.find(state);
  return found == pods.states.end() ? 0 : found->second;
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
     "mend the pilot's image or the pool (docs/provisioner.md, Things that go wrong); the first that joins "
     "ends it",
     Who::pool_operator},
    {"quota", "quota", "the quota of the pilots' namespace is used up",
     "a higher ResourceQuota, or wait for pods to end", Who::site_admin},
    {"max_pods_per_owner", "cap", "its owner has as many pods as one may have", k_end_or_raise,
     Who::pool_operator},
    {"max_submit_pods_per_cluster", "cap", "there are as many pods of its size as there may be",
     k_end_or_raise, Who::pool_operator},
    {"max_pods_per_group", "cap", "there are as many pods of its size as there may be", k_end_or_raise,
     Who::pool_operator},
    {"max_running_per_group", "cap", "as many pods of its size run as may", k_end_or_raise,
     Who::pool_operator},
    {"max_idle_per_group", "cap", "as many pods of its size wait as may", k_end_or_raise, Who::pool_operator},
    {"max_pods", "cap", "there are as many pods as there may be", k_end_or_raise, Who::pool_operator},
    {"max_running", "cap", "as many pods run as may", k_end_or_raise, Who::pool_operator},
    {"max_idle", "cap", "as many pods wait as may, of whatever size", k_end_or_raise, Who::pool_operator},
    {"ramp_up_per_group", "curb", "few pods of its size are made in one cycle",
     "wait for the next; or raise it", Who::nobody, Weight::waits},
    {"ramp_up", "curb", "few pods are made in one cycle", "wait for the next; or raise it", Who::nobody,
     Weight::waits},
};

void add_rules(const Ruling& ruling, bool coming, std::vector<Finding>& result) {
  for (const auto& step : ruling.steps) {
    const auto word = std::string_view(step).substr(0, step.find_first_of(": "));
    const auto* rule = std::ranges::find(k_rules, word, &Rule::word);
    if (rule != std::end(k_rules))
      result.push_back({coming ? Weight::note : rule->weight, std::string(rule->key), std::string(rule->what),
                        step, std::string(rule->change), rule->who});
    else if (ruling.verdict == "unservable")
      result.push_back({Weight::stops, "unservable", "the settings cannot make a pod for it", step,
                        "correct them, or what the job asks for", Who::pool_operator});
    else if (step.find("pilots wasted") != std::string::npos)
      result.push_back({Weight::note, "waste", "fewer pilots are made, since others ended without a job",
                        step, "condor_q -better-analyze of a job of this size: what do they require?",
                        Who::pool_operator});
  }
}

// Pods of its group that the API refused, as the running instance tells.
void add_refusals(const Scene& scene, bool coming, std::vector<Finding>& result) {
  if (!scene.status.is_object()) return;
  const auto mark = fmt::format("-{}-", scene.group.value().hash().substr(0, 8));
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

// Why a pod has no node: the scheduler's words, which speak of several nodes at once.
Finding no_node(const JoblessPod& pod, const Scene& scene) {
  const auto age = scene.now - pod.since;
  const auto says = [&pod](std::string_view words) { return pod.message.find(words) != std::string::npos; };
  Finding finding{.weight = Weight::stops,
                  .key = "unschedulable",
                  .what = "the pod made for it has no node",
                  .seen = fmt::format("{} for {} s: {}", pod.name, age.count(),
                                      pod.message.empty() ? "nothing said yet" : pod.message),
                  .change = "kubectl describe pod",
                  .who = Who::pool_operator};
  if (pod.message.empty()) {
    finding.weight = Weight::waits;
    finding.change = "wait for the scheduler";
    finding.who = Who::nobody;
  } else if (says("Insufficient") || says("Too many pods")) {
    finding.what += ": none that would do has room now";
    finding.change = "wait for room; a smaller request; or more nodes";
    finding.who = Who::site_admin;
    if (age <= scene.policy.unschedulable_limit) finding.weight = Weight::waits;
  } else if (says("selector") || says("affinity")) {
    finding.what += ": none has the labels that are asked for";
    finding.change =
        "node_selectors_dict, node_affinity_dict, the pod template, or the job's RequestLabels and "
        "RequestGPUTypes; "
        "or label nodes";
  } else if (says("taint")) {
    finding.what += ": pilots do not tolerate the nodes' taints";
    finding.change = "tolerations_list";
  }
  return finding;
}

Finding of_jobless(const JoblessPod& pod, const Scene& scene) {
  const auto age = scene.now - pod.since;
  const auto seen =
      fmt::format("{} for {} s{}{}", pod.name, age.count(), pod.message.empty() ? "" : ": ", pod.message);
  switch (pod.state) {
    case PodState::unschedulable:
      return no_node(pod, scene);
    case PodState::pull_error:
      return {Weight::stops,
              "pilot-image",
              "the pilot's image cannot be had",
              seen,
              "k8s_image, image_pull_secrets, or the registry",
              Who::pool_operator};
    case PodState::pulling:
      if (age <= scene.policy.pull_limit)
        return {Weight::waits, "pilot-pulls", "the images of the pod made for it are being pulled", seen,
                "wait"};
      return {Weight::stops,
              "pilot-pulls",
              "the images of the pod made for it take too long",
              seen,
              "the node, its network, or the registry",
              Who::site_admin};
    default:
      if (pod.message.empty())
        return {Weight::waits, "pilot-starts", "the pod made for it starts", seen, "wait"};
      return {Weight::stops,
              "pilot-start",
              "the pod made for it cannot start",
              seen,
              "mend what the kubelet's words say; kubectl logs POD -c pilot",
              Who::pool_operator};
  }
}

// One finding a state, of the pod that has been in it for longest.
void add_jobless(const Scene& scene, std::vector<Finding>& result) {
  std::map<PodState, const JoblessPod*> oldest;
  for (const auto& pod : scene.seen.supply.jobless) {
    if (pod.group != scene.group.value() || pod.outdated) continue;
    auto& first = oldest.try_emplace(pod.state, &pod).first->second;
    if (pod.since < first->since) first = &pod;
  }
  for (const auto& [state, pod] : oldest) result.push_back(of_jobless(*pod, scene));
}

void add_running(const Scene& scene, const GroupSupply& pods, std::vector<Finding>& result) {
  if (const auto n = count(pods, PodState::unregistered); n > 0) {
    const bool late = pods.broken > 0 && pods.waiting == 0;
    result.push_back(
        {late ? Weight::stops : Weight::waits, late ? "pilot-lost" : "pilot-starts",
         late ? "pilots run and never join the pool" : "a pilot runs and has yet to join the pool",
         fmt::format("{} run without an ad in the pool", n),
         late ? "kubectl logs POD -c pilot: token, CONDOR_HOST, network" : "wait",
         late ? Who::pool_operator : Who::nobody});
  }
  if (const auto n = count(pods, PodState::unmatched); n > 0) {
    const auto rejected = scene.job.ad.text("LastRejMatchReason");
    result.push_back(
        {Weight::waits, "negotiator", "a pilot of its size is free: it is the negotiator's turn",
         fmt::format("{} free{}{}", n,
                     rejected.empty() ? "" : "; when it last looked: ", one_line(rejected, 300)),
         "wait; if it lasts: condor_q -better-analyze JOB, condor_userprio, concurrency limits"});
  }
  if (pods.claimed > 0)
    result.push_back({Weight::note, "pilots-busy", "pilots of its size have other jobs",
                      fmt::format("{} pods", pods.claimed), "nothing"});
}

// Whether anybody decides at all.
void add_leader(const Scene& scene, std::vector<Finding>& result) {
  if (!scene.status.is_object()) {
    result.push_back({Weight::note, "no-status",
                      "what the running instance remembers (breakers, refusals) is unknown",
                      fmt::format("{} is not there", scene.status_file),
                      "ask where the leader runs: kubectl get lease has its name", Who::pool_operator});
    return;
  }
  if (const auto age = long_past(scene.status, scene.now))
    result.push_back({Weight::stops, "no-leader", "no provisioner leads",
                      fmt::format("the last cycle in {} was {} s ago", scene.status_file, age->count()),
                      "start it, or ask where the leader runs: kubectl get lease has its name",
                      Who::pool_operator});
}

std::string blindness(const Scene& scene) {
  if (!scene.plan.blind.empty()) return scene.plan.blind;
  return scene.status.is_object() ? scene.status.value("blind", "") : "";
}

}  // namespace

std::vector<Finding> of_pods(const Scene& scene) {
  std::vector<Finding> result;
  add_leader(scene, result);
  if (const auto blind = blindness(scene); !blind.empty()) {
    result.push_back({Weight::stops, "blind",
                      "nothing is decided while the pool or the cluster cannot be seen", blind,
                      "mend what does not answer", Who::pool_operator});
    return result;
  }
  const auto& problems = scene.seen.demand.problems;
  const auto silent = std::ranges::find_if(
      problems, [&](const auto& problem) { return problem.starts_with(scene.job.schedds.front() + ":"); });
  const auto ruling = ruling_of(scene);
  const auto pods = pods_of(scene);
  const auto stuck = pods.unschedulable;
  const bool coming = pods.waiting - stuck + pods.unmatched > 0;
  if (scene.seen.demand.schedds_failed > 0 && silent != problems.end())
    result.push_back({Weight::stops, "schedd-silent",
                      "its access point does not answer the question for demand", *silent,
                      "the access point; schedd_time_limit", Who::pool_operator});
  add_rules(ruling, coming, result);
  add_refusals(scene, coming, result);
  add_jobless(scene, result);
  add_running(scene, pods, result);
  const auto submit = submit_of(scene);
  const bool stopped =
      std::ranges::any_of(result, [](const Finding& finding) { return finding.weight == Weight::stops; });
  if (submit > 0 && !stopped)
    result.push_back(
        {Weight::waits, "next-cycle", "pods are made in the next cycle",
         fmt::format("{} for jobs of its size, at most {} s from now", submit, scene.sleep_time.count()),
         "wait"});
  if (result.empty() || (!ruling.known && !stopped))
    result.push_back({Weight::waits, "not-counted", "the answer for demand did not have it yet",
                      "nothing stands in its way that can be seen from here", "ask again in a minute"});
  return result;
}

}  // namespace glidepod::provisioner
