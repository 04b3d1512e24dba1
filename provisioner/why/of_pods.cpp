#include <algorithm>

#include "lib/base/text.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using Weight = Finding::Weight;
using Who = Finding::Who;

GroupSupply pods_of(const Scene& scene) {
  const auto found = scene.seen.supply.groups.find(scene.group.value());
  return found == scene.seen.supply.groups.end() ? GroupSupply{} : found->second;
}

std::int64_t count(const GroupSupply& pods, PodState state) {
  const auto found = pods.states.find(state);
  return found == pods.states.end() ? 0 : found->second;
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
  if (pod.node_comes) {
    finding.weight = Weight::waits;
    finding.what = "the pod made for it waits for a node that an autoscaler makes";
    finding.change = "wait";
    finding.who = Who::nobody;
  } else if (pod.message.empty()) {
    finding.weight = Weight::waits;
    finding.change = "wait for the scheduler";
    finding.who = Who::nobody;
  } else if (says("Insufficient") || says("Too many pods")) {
    finding.what += ": no suitable node has room now";
    finding.change = "wait for room; a smaller request; or more nodes";
    finding.who = Who::site_admin;
    if (age <= scene.policy.unschedulable_limit) finding.weight = Weight::waits;
  } else if (says("selector") || says("affinity")) {
    finding.what += ": no node has the labels that the pod asks for";
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
    case PodState::gated:
      return {Weight::waits,
              "pilot-gated",
              "the pod made for it waits to be admitted (a scheduling gate)",
              seen,
              "whoever holds it back, as Kueue does: its queues and quotas",
              Who::site_admin};
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

// The clauses of the job's requirements that only a slot can tell of, where the negotiator found nothing for
// it while a pilot of its size was there: then it is one of them. Empty: it is not known.
std::string unmet_requirements(const Scene& scene, const GroupSupply& pods) {
  // A pilot joins some time after its pod has begun to run, and the negotiator sees it in its next round.
  constexpr Seconds k_joined{120};
  const auto looked = scene.job.ad.evaluate("LastRejMatchTime");
  // Another reason is a matter of priorities and quotas.
  if (!scene.job.ad.text("LastRejMatchReason").starts_with("no match found") ||
      !looked.is(condor::Value::Type::integer))
    return {};
  const auto earliest = std::ranges::min_element(pods.registrations, {}, &Outcome::at);
  if (earliest != pods.registrations.end() && Time(Seconds(looked.integer)) < earliest->at + k_joined)
    return {};
  std::vector<std::string> clauses;
  for (const auto& clause : scene.job.clauses)
    if (clause.from == Clause::From::requirements && !clause.holds)
      clauses.push_back(one_line(clause.expression, 400));
  return fmt::format("{}", fmt::join(clauses, " && "));
}

void add_running(const Scene& scene, const GroupSupply& pods, std::vector<Finding>& result) {
  if (const auto n = count(pods, PodState::unregistered); n > 0) {
    const bool late = pods.broken > 0 && pods.waiting == 0;
    result.push_back(
        {late ? Weight::stops : Weight::waits, late ? "pilot-lost" : "pilot-starts",
         late ? "pilots run and never join the pool" : "a pilot runs and has yet to join the pool",
         fmt::format("pods: {}, without an ad in the pool", n),
         late ? "kubectl logs POD -c pilot: token, CONDOR_HOST, network" : "wait",
         late ? Who::pool_operator : Who::nobody});
  }
  if (const auto n = count(pods, PodState::unmatched); n > 0) {
    if (const auto unmet = unmet_requirements(scene, pods); !unmet.empty())
      result.push_back({Weight::stops, "requirements",
                        "no free pilot of its size meets the job's requirements",
                        fmt::format("{}; pods: {} free{}", unmet, n, last_rejection(scene.job.ad)),
                        "condor_q -better-analyze JOB; leave out of its requirements what pilots do not have",
                        Who::owner});
    else
      result.push_back(
          {Weight::waits, "negotiator", "a pilot of its size is free: it is the negotiator's turn",
           fmt::format("pods: {} free{}", n, last_rejection(scene.job.ad)),
           "wait; if it lasts: condor_q -better-analyze JOB, condor_userprio, concurrency limits"});
  }
  if (pods.claimed > 0)
    result.push_back({Weight::note, "pilots-busy", "pilots of its size have other jobs",
                      fmt::format("pods: {}", pods.claimed), "nothing"});
}

// Free pods of other groups that are not for this job, whatever else it asks for.
void add_refusing(const Scene& scene, std::vector<Finding>& result) {
  std::int64_t with_gpus = 0, too_large = 0;
  for (const auto& [group, pods] : scene.seen.supply.groups) {
    const auto free = count(pods, PodState::unmatched);
    if (scene.gpu_jobs_only && group.gpus > 0 && scene.group->gpus == 0)
      with_gpus += free;
    else if (group.gpus == scene.group->gpus &&
             fill_of(scene.job.ad, group) < static_cast<double>(scene.least_fill))
      too_large += free;
  }
  if (with_gpus > 0)
    result.push_back({Weight::note, "gpu-jobs-only", "free pods with GPUs take only jobs that request GPUs",
                      fmt::format("pods: {} free; gpu_jobs_only=yes", with_gpus), "gpu_jobs_only=no",
                      Who::pool_operator});
  if (too_large > 0)
    result.push_back({Weight::note, "least-fill", "free pods take only jobs that request more of them",
                      fmt::format("pods: {} free; least_fill={}", too_large, scene.least_fill),
                      "a lower least_fill", Who::pool_operator});
}

}  // namespace

std::vector<Finding> of_pods(const Scene& scene) {
  const auto pods = pods_of(scene);
  const bool coming = pods.waiting - pods.unschedulable + pods.unmatched > 0;
  auto result = of_decision(scene, coming);
  const auto stops = [](const Finding& finding) { return finding.weight == Weight::stops; };
  if (std::ranges::find(result, "blind", &Finding::key) != result.end()) return result;
  add_jobless(scene, result);
  add_running(scene, pods, result);
  if (std::ranges::any_of(result, stops)) return result;
  const auto decided = std::ranges::find(scene.plan.decisions, scene.group.value(), &Decision::group);
  if (decided == scene.plan.decisions.end())
    result.push_back({Weight::waits, "not-counted",
                      "the provisioner's last question for demand did not have it yet",
                      "nothing stands in its way that can be seen from here", "ask again in a minute"});
  else if (decided->submit > 0)
    result.push_back({Weight::waits, "next-cycle", "pods are made in the next cycle",
                      fmt::format("pods: {} for jobs of its size, at most {} s from now", decided->submit,
                                  scene.sleep_time.count()),
                      "wait"});
  else if (result.empty())
    result.push_back({Weight::waits, "unknown", "nothing stands in its way that can be seen from here",
                      decided->reason(), "condor_q -better-analyze JOB"});
  add_refusing(scene, result);
  return result;
}

}  // namespace glidepod::provisioner
