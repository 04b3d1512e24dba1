#include "provisioner/demand/contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/condor/image_forms.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::provisioner {

std::vector<JobClause> container_jobs() {
  return {
      {JobRule::universe, "(JobUniverse =?= 5)"},
      {JobRule::no_pre_cmd, "(PreCmd =?= undefined)"},
      {JobRule::no_post_cmd, "(PostCmd =?= undefined)"},
      {JobRule::no_tool_daemon, "(ToolDaemonCmd =?= undefined)"},
      {JobRule::no_transfer_plugins, "(TransferPlugins =?= undefined)"},
      {JobRule::no_docker, "(WantDocker =?= undefined || WantDocker =?= false)"},
      {JobRule::no_parrot, "(UseParrot =?= undefined || UseParrot =?= false)"},
      {JobRule::no_suspension, "(SuspendJobAtExec =?= undefined || SuspendJobAtExec =?= false)"},
      {JobRule::no_encryption,
       "(EncryptExecuteDirectory =?= undefined || EncryptExecuteDirectory =?= false)"},
      {JobRule::no_debugger, "(StarterWaitForDebug =?= undefined || StarterWaitForDebug =?= 0)"},
      {JobRule::no_starter_debug, "(JobStarterDebug =?= undefined || JobStarterDebug =?= false)"},
      {JobRule::image,
       R"x(regexp("^([$][$][(]|docker://|/cvmfs/(singularity[.]opensciencegrid[.]org|unpacked[.]cern[.]ch)/)x"
       R"x((?![.]images/|.*[.]sif/*$))", )x"
       R"x((isString(SingularityImage) ? SingularityImage : )x"
       R"((ContainerImage =!= undefined ? ContainerImage : GlidepodDefaultImage))) =?= True)"},
      {JobRule::no_pilot, "(GlidepodPilot =!= True || GlidepodPilotJobs)"},
      // Of the jobs' own requirements: where they have RequireGPUs, condor_submit has TARGET.AvailableGPUs in
      // them, which pilots, who know GPUs by their number, do not have. Its value would not do:
      // `Capability > 7` is undefined.
      {JobRule::no_gpu_properties, R"x(regexp("^(undefined)?$", unparse(RequireGPUs)))x"},
  };
}

namespace {

// The end of the pattern of image names.
constexpr std::string_view k_end_of_names = R"x(.*[.]sif/*$)))x";

// What START keeps for the start of each job.
constexpr std::chrono::seconds k_to_start{300};

// Of several declarations the least holds. What is no number declares nothing.
JobClause in_time(std::chrono::seconds limit) {
  std::string declared, fits;
  for (const auto& [attribute, seconds] : k_declared_times) {
    declared += fmt::format("{}{} > 0", declared.empty() ? "" : " || ", attribute);
    const auto unit = seconds == 1 ? "" : fmt::format(" * {}", seconds);
    fits += fmt::format(" || ({}{} <= {}) =?= True", attribute, unit, limit.count());
  }
  return {JobRule::time, fmt::format("(({}) =!= True{})", declared, fits), limit};
}

}  // namespace

std::vector<JobClause> container_jobs(const std::string& default_image, bool pilot_jobs,
                                      std::chrono::seconds pod_lifetime, ImageFiles files) {
  auto jobs = container_jobs();
  const auto set = [&jobs](JobRule rule, std::string_view attribute, const std::string& value) {
    for (auto& job : jobs)
      if (job.rule == rule) job.expression.replace(job.expression.find(attribute), attribute.size(), value);
  };
  set(JobRule::no_pilot, "GlidepodPilotJobs", pilot_jobs ? "True" : "False");
  set(JobRule::image, "GlidepodDefaultImage",
      default_image.empty() ? "undefined" : condor::quote(default_image));
  if (files != ImageFiles::refused)
    set(JobRule::image, k_end_of_names,
        fmt::format("{}|{}{}", k_end_of_names, condor::image_file_pattern(),
                    files == ImageFiles::with_cvmfs ? "|^/cvmfs/" : ""));
  if (pod_lifetime > std::chrono::seconds(0))
    jobs.push_back(in_time(std::max(pod_lifetime - k_to_join - k_to_start, std::chrono::seconds(0))));
  return jobs;
}

std::string joined(const std::vector<JobClause>& clauses) {
  std::string result;
  for (const auto& clause : clauses) result += (result.empty() ? "" : " && ") + clause.expression;
  return result;
}

}  // namespace glidepod::provisioner
