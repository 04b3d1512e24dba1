#pragma once

namespace glidepod::provisioner {

// Which jobs pilots with payload containers take, as an expression over the job: what START of
// images/pilot/config.d says of the job alone (GLIDEPOD_START_NATIVE and GLIDEPOD_START_IMAGE). A test
// compares the two, so that what is counted and what is taken are the same.
inline constexpr const char* k_container_jobs =
    R"((JobUniverse =?= 5) && (PreCmd =?= undefined) && )"
    R"((PostCmd =?= undefined) && (ToolDaemonCmd =?= undefined) && (TransferPlugins =?= undefined) && )"
    R"((WantDocker =?= undefined || WantDocker =?= false) && (UseParrot =?= undefined || UseParrot =?= false) && )"
    R"((SuspendJobAtExec =?= undefined || SuspendJobAtExec =?= false) && )"
    R"((EncryptExecuteDirectory =?= undefined || EncryptExecuteDirectory =?= false) && )"
    R"((StarterWaitForDebug =?= undefined || StarterWaitForDebug =?= 0) && )"
    R"((JobStarterDebug =?= undefined || JobStarterDebug =?= false) && )"
    R"x(regexp("^(docker://|/cvmfs/singularity[.]opensciencegrid[.]org/)", )x"
    R"x((isString(SingularityImage) ? SingularityImage : ContainerImage)) =?= True)x";

}  // namespace glidepod::provisioner
