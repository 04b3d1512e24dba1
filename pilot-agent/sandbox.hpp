#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/condor/job_ad.hpp"
#include "lib/kube/pod.hpp"

namespace glidepod::agent {

// A job as HTCondor says it is.
struct SandboxJob {
  condor::JobIdentity identity;
  std::int64_t disk_kib = 0;  // of its slot, else what it asked for; 0: not known
  std::string slot = {};      // its slot's name; empty: not known
  kube::Amount slot_size = {};
  bool whole = true;  // its slot has all CPUs of the pilot, or that is not known
};

// From the texts of both ads; that of the slot may be empty.
SandboxJob job_of(std::string_view job_ad, std::string_view machine_ad);

// From SANDBOX/.job.ad, and .machine.ad, which may be missing. The sandbox's path comes from an unprivileged
// caller: it must lie in scratch, no link is followed on the way, and the files must be plain ones of root or
// of trusted, HTCondor's own user: the starter writes them before it fetches the job's files, one of which
// may have taken its name.
Result<SandboxJob> read_job(const std::string& scratch, const std::string& sandbox, uid_t trusted);

}  // namespace glidepod::agent
