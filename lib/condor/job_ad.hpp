#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glidepod::condor {

// Who a job is, from the ad that the starter writes into the sandbox as .job.ad.
struct JobIdentity {
  std::string owner;            // "alice@pool.example"; empty if the ad does not say
  std::string id;               // "12.0"; empty if the ad does not say
  std::int64_t memory_mib = 0;  // RequestMemory; 0 if the ad does not say, or not by a number
};

// Reads an old-syntax ClassAd: a line `Name = value` an attribute, names in any case. Of an attribute that
// stands twice the last counts, as in HTCondor; lines of other forms are passed over.
JobIdentity parse_job_ad(std::string_view text);

}  // namespace glidepod::condor
