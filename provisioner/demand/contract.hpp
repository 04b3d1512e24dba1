#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace glidepod::provisioner {

// What pilots with payload containers ask of a job.
enum class JobRule : std::uint8_t {
  universe,
  no_pre_cmd,
  no_post_cmd,
  no_tool_daemon,
  no_transfer_plugins,
  no_docker,
  no_parrot,
  no_suspension,
  no_encryption,
  no_debugger,
  no_starter_debug,
  image,
  no_pilot,
  no_gpu_properties,
};
struct JobClause {
  JobRule rule;
  std::string expression;  // over the job
  bool operator==(const JobClause&) const = default;
};

// Which jobs such pilots take: what START of images/pilot/config.d says of the job alone
// (GLIDEPOD_START_NATIVE, GLIDEPOD_START_IMAGE and GLIDEPOD_START_PILOT) and of the slot's
// GlidepodDefaultImage and GlidepodPilotJobs. A test compares the two, so that what is counted and what is
// taken are the same.
std::vector<JobClause> container_jobs();
// The same of pilots with this image for jobs that name none (empty: they have none), and that take jobs
// which are pilots, or do not.
std::vector<JobClause> container_jobs(const std::string& default_image, bool pilot_jobs);
// All of them as one expression; none: empty.
std::string joined(const std::vector<JobClause>& clauses);

}  // namespace glidepod::provisioner
