#include <algorithm>

#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using condor::Ad;
using Weight = Finding::Weight;
using Who = Finding::Who;

// "since 2026-01-31T12:00:00Z", as the job has it.
std::string since(const Ad& job) {
  const auto entered = job.evaluate("EnteredCurrentStatus");
  if (!entered.is(condor::Value::Type::integer)) return {};
  return " since " + time_text(Time(Seconds(entered.integer)));
}

Finding no_job(const JobLook& job) {
  Finding finding{
      .key = "no-such-job",
      .what = "there is no such job",
      .seen = fmt::format("{} access points were asked, for their queues and histories", job.schedds_asked),
      .change =
          "see condor_q for its number; of a cluster with max_materialize or max_idle it may "
          "not be made yet",
      .who = Who::owner};
  if (!job.problems.empty()) {
    finding.what = "no access point that answered has such a job";
    finding.change = "mend the access points that did not answer (below), and ask again";
    finding.who = Who::pool_operator;
  }
  return finding;
}

Finding gone(const Ad& job) {
  const bool removed = job.evaluate("JobStatus").integer == 3;
  const bool killed = job.evaluate("ExitBySignal").boolean;
  const auto how = killed ? fmt::format("signal {}", job.written("ExitSignal"))
                          : fmt::format("exit code {}", job.written("ExitCode"));
  return {.weight = Weight::note,
          .key = removed ? "removed" : "completed",
          .what = fmt::format("the job was {}", removed ? "removed" : "completed"),
          .seen = (removed ? one_line(job.text("RemoveReason"), 300)
                           : fmt::format("{}, last on {}", how, one_line(job.text("LastRemoteHost"), 300))) +
                  "," + since(job),
          .change = "nothing; to run it again, submit it again"};
}

// What a job that is not idle does; nothing for an idle one.
std::vector<Finding> of_status(const Ad& job) {
  const auto status = job.evaluate("JobStatus").integer;
  const auto note = [](std::string key, std::string what, std::string seen) {
    return std::vector<Finding>{{Weight::note, std::move(key), std::move(what), std::move(seen), "nothing"}};
  };
  switch (status) {
    case 1:
      return {};
    case 3:
      return note("removed", "the job is being removed",
                  one_line(job.text("RemoveReason"), 300) + since(job));
    case 4:
      return note("completed", "the job has completed and is about to leave the queue", since(job));
    case 5:
      return {of_hold(job)};
    default:
      return note("runs", status == 7 ? "the job has a pilot and is suspended" : "the job runs",
                  fmt::format("on {}{}", one_line(job.text("RemoteHost"), 300), since(job)));
  }
}

// What jobs ask for and settings pass over in silence.
void add_ignored(const Scene& scene, std::vector<Finding>& result) {
  const std::pair<const char*, const List*> requests[] = {{"RequestLabels", &scene.policy.job_labels},
                                                          {"RequestDiskVolumes", &scene.policy.job_volumes}};
  for (const auto& [attribute, allowed] : requests)
    for (const auto& part : split(scene.job.ad.text(attribute), ',')) {
      const auto key = std::string(trim(part)).substr(0, trim(part).find(':'));
      if (key.empty() || std::find(allowed->begin(), allowed->end(), key) != allowed->end()) continue;
      const auto* setting = allowed == &scene.policy.job_labels ? "job_labels" : "job_volumes";
      result.push_back({Weight::note, "request-ignored", fmt::format("its {} is ignored", attribute),
                        fmt::format("'{}' is not in {}", one_line(key, 100), setting),
                        fmt::format("add it to {}", setting), Who::pool_operator});
    }
}

// A partitionable slot compares what it has with these, and with undefined nothing compares. What the job has
// an expression for may depend on the slot.
void add_undefined(const Ad& job, std::vector<Finding>& result) {
  constexpr std::pair<const char*, const char*> k_requests[] = {
      {"RequestCpus", "request_cpus"}, {"RequestMemory", "request_memory"}, {"RequestDisk", "request_disk"}};
  for (const auto& [name, command] : k_requests) {
    if (job.written(name) != "undefined") continue;
    result.push_back({Weight::stops, "request",
                      fmt::format("its {} is no number, and no slot takes such a job, in any pool", command),
                      fmt::format("{} = undefined", name),
                      fmt::format("{} as a number; or leave the line out", command), Who::owner});
  }
}

// It is no demand.
Finding of_unmet(const Unmet& unmet) {
  Finding finding{.weight = Weight::stops,
                  .key = "requirements",
                  .what = "no pilot that is made for it will ever meet what it requires",
                  .seen = fmt::format("{}: {}", one_line(unmet.clause, 400), one_line(unmet.why, 300)),
                  .change =
                      "correct requirements in the submit file, or condor_qedit JOB Requirements; a size "
                      "it requires it has to request",
                  .who = Who::owner};
  if (!unmet.lacks.empty())
    finding.change = fmt::format(
        "leave it out of requirements; where pilots do have it, the operator's [k8s] pilot_attributes={}",
        one_line(fmt::format("{}", fmt::join(unmet.lacks, ",")), 200));
  return finding;
}

// A number of the job, as the pilots' START compares it.
double number(const Ad& job, std::string_view name) {
  const auto value = job.evaluate(name);
  return value.is(condor::Value::Type::integer) ? static_cast<double>(value.integer) : value.real;
}

}  // namespace

std::string last_rejection(const Ad& job) {
  const auto said = job.text("LastRejMatchReason");
  return said.empty() ? "" : "; when it last looked: " + one_line(trim(said), 300);
}

double fill_of(const Ad& job, const Group& pod) {
  return 100 * std::max(number(job, "RequestCpus") / static_cast<double>(pod.cpus),
                        number(job, "RequestMemory") / static_cast<double>(pod.memory_mb));
}

std::vector<Finding> of_job(const Scene& scene) {
  const auto& job = scene.job;
  if (job.blind)
    return {{Weight::stops, "blind", "the pool could not be asked", *job.blind,
             "mend the collector, its address (pool=) or the provisioner's token", Who::pool_operator}};
  if (job.where == JobLook::Where::nowhere) return {no_job(job)};
  if (job.where == JobLook::Where::history) return {gone(job.ad)};
  if (auto result = of_status(job.ad); !result.empty()) return result;

  std::vector<Finding> result;
  if (!job.counts)
    result.push_back(
        {Weight::stops, "schedd", "jobs of its access point do not count",
         fmt::format("{}; schedd_whitelist_regexp={}, schedd_identity_regexp={}", job.schedds.front(),
                     scene.htcondor.schedd_whitelist_regexp, scene.htcondor.schedd_identity_regexp),
         "let these settings match it", Who::pool_operator});
  if (!scene.group)
    result.push_back({Weight::stops, "request", "what it asks for cannot be read",
                      scene.group.error().message(),
                      "correct the request in the submit file, or condor_qedit", Who::owner});
  else if (const auto fill = fill_of(job.ad, scene.group.value());
           fill < static_cast<double>(scene.least_fill))
    result.push_back(
        {Weight::stops, "least-fill", "it fills too little of the pod that is made for it",
         fmt::format("{:.0f} % of {}; least_fill={}", fill, scene.group->name(), scene.least_fill),
         "a lower least_fill, or smaller buckets", Who::pool_operator});
  add_undefined(job.ad, result);
  std::vector<Finding> notes;
  bool unmet = scene.unmet.has_value();
  for (const auto& clause : job.clauses) {
    if (clause.holds && *clause.holds) continue;
    // One that the job itself does not meet is told so; of the others, that one is told which no pilot meets.
    const bool of_slot = clause.from == Clause::From::requirements && !clause.of_job;
    if (of_slot && scene.unmet && clause.expression == scene.unmet->clause) continue;
    auto finding = of_clause(clause, job.ad);
    if (finding.key == "requirements" && finding.weight == Weight::stops) unmet = false;
    (finding.weight == Weight::stops ? result : notes).push_back(std::move(finding));
  }
  if (unmet) result.push_back(of_unmet(*scene.unmet));
  add_ignored(scene, notes);
  result.insert(result.end(), notes.begin(), notes.end());
  return result;
}

}  // namespace glidepod::provisioner
