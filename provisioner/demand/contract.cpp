#include "provisioner/demand/contract.hpp"

#include <string_view>

#include "lib/condor/job_ad.hpp"

namespace glidepod::provisioner {

std::string container_jobs(const std::string& default_image, bool pilot_jobs) {
  std::string jobs = k_container_jobs;
  const auto set = [&jobs](std::string_view attribute, const std::string& value) {
    jobs.replace(jobs.find(attribute), attribute.size(), value);
  };
  set("GlidepodPilotJobs", pilot_jobs ? "True" : "False");
  set("GlidepodDefaultImage", default_image.empty() ? "undefined" : condor::quote(default_image));
  return jobs;
}

}  // namespace glidepod::provisioner
