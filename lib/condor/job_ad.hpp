#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace glidepod::condor {

// Attribute names are compared without case.
struct LessNoCase {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};

// A ClassAd in the old syntax, as HTCondor prints a job: one line `Name = expression` for each attribute.
// Other lines are skipped. HTCondor prints each attribute once, but it prints line ends in strings as they
// are. So an attribute that stands twice is a forgery, and gets the empty expression here. The views are into
// the text.
using JobAttributes = std::map<std::string_view, std::string_view, LessNoCase>;
JobAttributes parse_attributes(std::string_view text);

// The text of an expression that is one string literal, with the backslashes before characters removed. None
// for any other expression, even a constant one.
std::optional<std::string> string_literal(std::string_view expression);

// The text as a string literal.
std::string quote(std::string_view text);

// What a job's ad says about the job. The starter writes this ad into the sandbox as .job.ad and gives it to
// its hooks.
struct JobIdentity {
  std::string owner;                  // "alice@pool.example"; empty if the ad does not say
  std::string id;                     // "12.0"; empty if the ad does not say
  std::int64_t memory_mib = 0;        // RequestMemory; 0 if the ad does not say, or not by a number
  std::int64_t request_disk_kib = 0;  // RequestDisk; 0 likewise
  std::int64_t keep_idle_s = 0;       // KeepClaimIdle; 0 likewise
  bool pilot = false;                 // GlidepodPilot: the job has jobs of its own
};

JobIdentity parse_job_ad(std::string_view text);

// What the slot's ad says, which the starter writes beside the job's ad: Disk in KiB, Cpus, TotalCpus (of the
// whole machine), Memory in MiB, and Name. The numbers are 0, and the name is empty, if the ad does not say.
std::int64_t slot_disk_kib(std::string_view machine_ad);
std::int64_t slot_cpus(std::string_view machine_ad);
std::int64_t slot_total_cpus(std::string_view machine_ad);
std::int64_t slot_memory_mib(std::string_view machine_ad);
std::string slot_name(std::string_view machine_ad);

// The lines of an ad that parse_job_ad() and the five functions above read.
std::string identity_lines(const JobAttributes& job);
std::string slot_lines(std::string_view machine_ad);

}  // namespace glidepod::condor
