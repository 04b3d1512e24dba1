#include "provisioner/demand/contract.hpp"

#include <string_view>

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

std::vector<JobClause> container_jobs(const std::string& default_image, bool pilot_jobs) {
  auto jobs = container_jobs();
  const auto set = [&jobs](JobRule rule, std::string_view attribute, const std::string& value) {
    for (auto& [of, expression] : jobs)
      if (of == rule) expression.replace(expression.find(attribute), attribute.size(), value);
  };
  set(JobRule::no_pilot, "GlidepodPilotJobs", pilot_jobs ? "True" : "False");
  set(JobRule::image, "GlidepodDefaultImage",
      default_image.empty() ? "undefined" : condor::quote(default_image));
  return jobs;
}

std::string joined(const std::vector<JobClause>& clauses) {
  std::string result;
  for (const auto& clause : clauses) result += (result.empty() ? "" : " && ") + clause.expression;
  return result;
}

}  // namespace glidepod::provisioner
