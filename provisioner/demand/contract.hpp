#pragma once

#include <string>

namespace glidepod::provisioner {

// Which jobs pilots with payload containers take, as an expression over the job: what START of
// images/pilot/config.d says of the job alone (GLIDEPOD_START_NATIVE, GLIDEPOD_START_IMAGE and
// GLIDEPOD_START_PILOT) and of the slot's GlidepodDefaultImage and GlidepodPilotJobs. A test compares the
// two, so that what is counted and what is taken are the same. The last clause is of the jobs' own
// requirements: where they have RequireGPUs, condor_submit has TARGET.AvailableGPUs in them, which pilots,
// who know GPUs by their number, do not have. Its value would not do: `Capability > 7` is undefined.
inline constexpr const char* k_container_jobs =
    R"((JobUniverse =?= 5) && (PreCmd =?= undefined) && )"
    R"((PostCmd =?= undefined) && (ToolDaemonCmd =?= undefined) && (TransferPlugins =?= undefined) && )"
    R"((WantDocker =?= undefined || WantDocker =?= false) && (UseParrot =?= undefined || UseParrot =?= false) && )"
    R"((SuspendJobAtExec =?= undefined || SuspendJobAtExec =?= false) && )"
    R"((EncryptExecuteDirectory =?= undefined || EncryptExecuteDirectory =?= false) && )"
    R"((StarterWaitForDebug =?= undefined || StarterWaitForDebug =?= 0) && )"
    R"((JobStarterDebug =?= undefined || JobStarterDebug =?= false) && )"
    R"x(regexp("^(docker://|/cvmfs/(singularity[.]opensciencegrid[.]org|unpacked[.]cern[.]ch)/)x"
    R"x((?![.]images/|.*[.]sif/*$))", )x"
    R"x((isString(SingularityImage) ? SingularityImage : )x"
    R"((ContainerImage =!= undefined ? ContainerImage : GlidepodDefaultImage))) =?= True && )"
    R"((GlidepodPilot =!= True || GlidepodPilotJobs) && )"
    R"x(regexp("^(undefined)?$", unparse(RequireGPUs)))x";

// The same of pilots with this image for jobs that name none (empty: they have none), and that take jobs
// which are pilots, or do not.
std::string container_jobs(const std::string& default_image, bool pilot_jobs);

}  // namespace glidepod::provisioner
