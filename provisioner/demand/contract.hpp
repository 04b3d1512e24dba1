#pragma once

#include <chrono>
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
  time,
};
struct JobClause {
  JobRule rule;
  std::string expression;         // over the job
  std::chrono::seconds limit{0};  // of time: how much a job may declare
  bool operator==(const JobClause&) const = default;
};

// Which jobs such pilots take: what START of images/pilot/config.d says of the job alone
// (GLIDEPOD_START_NATIVE, GLIDEPOD_START_IMAGE and GLIDEPOD_START_PILOT) and of the slot's
// GlidepodDefaultImage and GlidepodPilotJobs. A test compares the two, so that what is counted and what is
// taken are the same.
std::vector<JobClause> container_jobs();
// The same of pilots with this image for jobs that name none (empty: they have none), that take jobs which
// are pilots, or do not, and whose pods end after so long (0: never): a job may then declare no more time
// than a new pod has for it, as GLIDEPOD_START_TIME says it of a pod of any age.
// Whether jobs' images may be files that HTCondor transfers, and what lies in CVMFS, as
// images/pilot/config.d/51-image-files.config has it.
enum class ImageFiles : std::uint8_t { refused, taken, with_cvmfs };
std::vector<JobClause> container_jobs(const std::string& default_image, bool pilot_jobs,
                                      std::chrono::seconds pod_lifetime = std::chrono::seconds(0),
                                      ImageFiles files = ImageFiles::refused);
// Of a pod's life, before its pilot takes a job: images are pulled, and the pool is joined.
constexpr std::chrono::seconds k_to_join{600};
// The attributes by which a job declares its time, with the seconds of a unit.
struct DeclaredTime {
  const char* attribute;
  std::int64_t seconds;
};
constexpr DeclaredTime k_declared_times[] = {{"AllowedJobDuration", 1},
                                             {"AllowedExecuteDuration", 1},
                                             {"MaxWallTimeMins", 60},
                                             {"JOB_EXPECTED_MAX_LIFETIME", 1}};
// All of them as one expression; none: empty.
std::string joined(const std::vector<JobClause>& clauses);

}  // namespace glidepod::provisioner
