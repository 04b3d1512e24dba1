#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::agent {

// A job as its sandbox has it.
struct SandboxJob {
  condor::JobIdentity identity;
  std::int64_t disk_kib = 0;  // of its slot, else what it asked for; 0: not known
};

// From SANDBOX/.job.ad, and .machine.ad, which may be missing. The sandbox's path comes from an unprivileged
// caller: it must lie in scratch, no link is followed on the way, and the files must be plain ones of root or
// of trusted, HTCondor's own user: the starter writes them before it fetches the job's files, one of which
// may have taken its name.
Result<SandboxJob> read_job(const std::string& scratch, const std::string& sandbox, uid_t trusted);

}  // namespace glidepod::agent
