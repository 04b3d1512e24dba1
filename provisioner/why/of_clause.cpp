#include "lib/base/text.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using condor::Ad;
using From = Clause::From;
using Weight = Finding::Weight;
using Who = Finding::Who;

constexpr std::string_view k_or_store =
    "; or the operator's image store, which takes files that HTCondor transfers, and oras:// "
    "(docs/image-store.md)";

// Attribute by attribute what the clause speaks of, as the job has it.
std::string values_of(const std::string& expression, const Ad& job) {
  std::vector<std::string> values;
  const auto names = condor::referenced_attributes(expression);
  if (!names) return {};
  for (const auto& name : names.value())
    values.push_back(fmt::format("{} = {}", name, one_line(job.written(name), 200)));
  return fmt::format("{}", fmt::join(values, ", "));
}

Finding of_image(const Ad& job) {
  Finding finding{.key = "image-form", .who = Who::owner};
  const bool special = job.evaluate("SingularityImage").is(condor::Value::Type::string);
  const auto* attribute = special ? "SingularityImage" : "ContainerImage";
  const auto image = job.text(attribute);
  finding.seen = fmt::format("{} = {}", attribute, one_line(job.written(attribute), 300));
  finding.change = "container_image = docker://NAME[:TAG], with the image in a registry (docs/user.md)";
  if (job.written("ContainerImage") == "undefined" && job.written("SingularityImage") == "undefined") {
    finding.key = "no-image";
    finding.what = "the job names no image";
    finding.seen = "neither ContainerImage nor SingularityImage is set";
    finding.change += "; or the operator's [k8s] default_image";
  } else if (image.empty()) {
    finding.key = "image-expression";
    finding.what = "its image is an expression that gives no text";
  } else if (const auto scheme = image.find("://"); scheme != std::string::npos) {
    const bool docker = strcasecmp(image.substr(0, scheme).c_str(), "docker") == 0;
    finding.what = docker ? "docker:// is written in small letters"
                          : fmt::format("pilots cannot switch to images of {}://",
                                        one_line(image.substr(0, scheme), 50));
    if (!docker && (image.ends_with(".sif") || image.starts_with("oras://"))) finding.change += k_or_store;
  } else if (image.ends_with(".sif")) {
    finding.what = "its image is a file, and these pilots switch to a registry's only";
    finding.change += k_or_store;
  } else if (image.find("/.images/") != std::string::npos) {
    finding.what =
        "its image is the folder that a name in CVMFS leads to, which does not tell the image's name in a "
        "registry";
    finding.change =
        "the name itself, /cvmfs/singularity.opensciencegrid.org/PROJECT/NAME:TAG, or docker://NAME";
  } else if (image.starts_with("/")) {
    finding.what =
        "its image is a path that is not below /cvmfs/singularity.opensciencegrid.org/ or "
        "/cvmfs/unpacked.cern.ch/";
  } else {
    finding.what = "its image's name has no docker:// before it";
  }
  return finding;
}

Finding not_taken(std::string what, std::string_view change) {
  return {.key = "not-taken",
          .what = std::move(what),
          .change = fmt::format("{}; docs/security.md has the reason", change),
          .who = Who::owner};
}

// What it declares of its time, as the job has it.
std::string declared_times(const Ad& job) {
  std::vector<std::string> all;
  for (const auto& [attribute, seconds] : k_declared_times)
    if (const auto written = job.written(attribute); written != "undefined")
      all.push_back(fmt::format("{} = {}", attribute, one_line(written, 200)));
  return fmt::format("{}", fmt::join(all, ", "));
}

Finding of_contract(const JobClause& clause, const Ad& job) {
  switch (clause.rule) {
    case JobRule::universe:
      return {.key = "not-taken", .what = "pilots do not take such jobs", .who = Who::owner};
    case JobRule::no_pre_cmd:
      return not_taken("its PreCmd would run outside of its image", "leave +PreCmd out");
    case JobRule::no_post_cmd:
      return not_taken("its PostCmd would run outside of its image", "leave +PostCmd out");
    case JobRule::no_tool_daemon:
      return not_taken("its tool daemon would run outside of its image", "leave tool_daemon_cmd out");
    case JobRule::no_transfer_plugins:
      return not_taken("its own transfer plugin would run outside of its image",
                       "leave transfer_plugins out");
    case JobRule::no_docker:
      return not_taken("it is a job for Docker", "container_image = docker://NAME in place of docker_image");
    case JobRule::no_parrot:
      return not_taken("it wants Parrot", "leave +UseParrot out");
    case JobRule::no_suspension:
      return not_taken("it wants to be suspended at its start", "leave +SuspendJobAtExec out");
    case JobRule::no_encryption:
      return not_taken("it wants its folder encrypted", "encrypt_execute_directory = false");
    case JobRule::no_debugger:
      return not_taken("it wants a starter that waits for a debugger", "leave +StarterWaitForDebug out");
    case JobRule::no_starter_debug:
      return not_taken("it wants a starter that debugs", "leave job_starter_debug out");
    case JobRule::image:
      return of_image(job);
    case JobRule::no_pilot:
      return {.key = "pilot-job",
              .what = "it is a pilot itself, and these pilots take no such jobs",
              .change = "the operator's [k8s] pilot_jobs=yes; or leave +GlidepodPilot out",
              .who = Who::pool_operator};
    case JobRule::no_gpu_properties:
      return {.key = "gpu-properties",
              .what = "it asks for properties of GPUs, and pilots know theirs by number and kind only",
              .seen = fmt::format("RequireGPUs = {}", one_line(job.written("RequireGPUs"), 300)),
              .change =
                  "leave require_gpus out; for kinds +RequestGPUTypes = \"NVIDIA-L40\", as the nodes' label "
                  "nvidia.com/gpu.product has them",
              .who = Who::owner};
    case JobRule::time:
      return {
          .key = "time",
          .what = "it declares more time than a pod lives for",
          .seen = fmt::format("{}; a new pod has {} s for a job", declared_times(job), clause.limit.count()),
          .change =
              "declare less, and save work on the way (docs/submit.md); or the operator's [k8s] "
              "pod_lifetime",
          .who = Who::owner};
  }
  return {};
}

std::string_view universe_name(std::int64_t universe) {
  switch (universe) {
    case 1:
      return "standard";
    case 7:
      return "scheduler";
    case 9:
      return "grid";
    case 10:
      return "java";
    case 11:
      return "parallel";
    case 12:
      return "local";
    case 13:
      return "vm";
    default:
      return "another";
  }
}

Finding of_requirement(const Clause& clause) {
  if (clause.of_job)
    return {.key = "requirements",
            .what = "the job's own requirements are not met, whatever the pilot",
            .change = "correct requirements in the submit file, or condor_qedit JOB Requirements",
            .who = Who::owner};
  Finding finding{.weight = Weight::note,
                  .key = "requirements",
                  .what = "what the job requires of its slot is for the negotiator to say",
                  .change = "condor_q -better-analyze JOB; leave it out where pilots do not have it",
                  .who = Who::owner};
  if (clause.expression.find("FileSystemDomain") != std::string::npos) {
    finding.what = "it wants a file system that it shares with the access point, and pilots have none";
    finding.change = "should_transfer_files = yes";
  }
  return finding;
}

Finding by_origin(const Clause& clause, const Ad& job) {
  switch (clause.from) {
    case From::universe:
      return {.key = "universe",
              .what = fmt::format("jobs of the {} universe need no pilot and get none",
                                  universe_name(job.evaluate("JobUniverse").integer)),
              .change = "universe = vanilla or container",
              .who = Who::owner};
    case From::name_space:
      return {.key = "namespace",
              .what = "it does not ask for the namespace that this provisioner serves",
              .change =
                  "+RequestK8SNamespace = \"NAMESPACE\" in the submit file; or the operator's "
                  "force_k8s_namespace_matching=no, or pattern where it asks by a pattern",
              .who = Who::owner};
    case From::pilots:
      return of_contract(*clause.of_pilots, job);
    case From::settings:
      return {.key = "query",
              .what = "the site's [htcondor] additional_requirements leave it out",
              .change = "change these, or the job so that it fits",
              .who = Who::pool_operator};
    case From::start:
      return {.key = "pilot-requirements",
              .what = "the additional_requirements that pilots have in their START refuse it",
              .change = "change these, or the job so that it fits",
              .who = Who::pool_operator};
    case From::requirements:
      return of_requirement(clause);
  }
  return {};
}

}  // namespace

Finding of_clause(const Clause& clause, const Ad& job) {
  auto finding = by_origin(clause, job);
  if (!clause.holds) {
    finding.weight = Weight::note;
    if (clause.from != From::requirements) {
      finding.key = "untold";
      finding.what = "it could not be found out whether the job meets this";
    }
  }
  if (finding.seen.empty()) {
    const auto values = clause.of_job ? values_of(clause.expression, job) : "";
    finding.seen =
        fmt::format("{}{}{}", one_line(clause.expression, 400), values.empty() ? "" : ", where ", values);
  }
  return finding;
}

}  // namespace glidepod::provisioner
