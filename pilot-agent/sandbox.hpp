#pragma once

#include <sys/types.h>

#include <string>

#include "lib/base/result.hpp"
#include "lib/condor/job_ad.hpp"

namespace glidepod::agent {

// The job's identity from SANDBOX/.job.ad. The sandbox's path comes from an unprivileged caller: it must lie
// in scratch, no link is followed on the way, and the file must be a plain one of root or of trusted,
// HTCondor's own user: the starter writes it before it fetches the job's files, one of which may have taken
// its name.
Result<condor::JobIdentity> read_job_identity(const std::string& scratch, const std::string& sandbox,
                                              uid_t trusted);

}  // namespace glidepod::agent
