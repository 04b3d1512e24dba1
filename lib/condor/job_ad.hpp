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

// An old-syntax ClassAd as HTCondor prints a job: a line `Name = expression` an attribute; lines of other
// forms are skipped. HTCondor prints each attribute once, but line ends in strings as they are: an attribute
// that stands twice is somebody's forgery, and has the empty expression here. Views into the text.
using JobAttributes = std::map<std::string_view, std::string_view, LessNoCase>;
JobAttributes parse_attributes(std::string_view text);

// The text of an expression that is one string literal, backslashes before a character taken off; none for
// any other expression, however constant.
std::optional<std::string> string_literal(std::string_view expression);

// The text as a string literal.
std::string quote(std::string_view text);

// What the job's ad says of a job: the ad that the starter writes into the sandbox as .job.ad and gives to
// its hooks.
struct JobIdentity {
  std::string owner;                  // "alice@pool.example"; empty if the ad does not say
  std::string id;                     // "12.0"; empty if the ad does not say
  std::int64_t memory_mib = 0;        // RequestMemory; 0 if the ad does not say, or not by a number
  std::int64_t request_disk_kib = 0;  // RequestDisk, likewise
  bool pilot = false;                 // GlidepodPilot: it has jobs of its own; false likewise
};

JobIdentity parse_job_ad(std::string_view text);

// Of the slot's ad that the starter writes beside it: Disk, in KiB, Cpus and Memory, in MiB, 0 likewise; and
// its Name, empty likewise.
std::int64_t slot_disk_kib(std::string_view machine_ad);
std::int64_t slot_cpus(std::string_view machine_ad);
std::int64_t slot_memory_mib(std::string_view machine_ad);
std::string slot_name(std::string_view machine_ad);

// The lines of an ad that parse_job_ad reads, and those that the four above do.
std::string identity_lines(const JobAttributes& job);
std::string slot_lines(std::string_view machine_ad);

}  // namespace glidepod::condor
