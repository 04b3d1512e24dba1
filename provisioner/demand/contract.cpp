#include "provisioner/demand/contract.hpp"

#include <string_view>

#include "lib/condor/job_ad.hpp"

namespace glidepod::provisioner {

std::string container_jobs(const std::string& default_image) {
  constexpr std::string_view attribute = "GlidepodDefaultImage";
  std::string jobs = k_container_jobs;
  jobs.replace(jobs.find(attribute), attribute.size(),
               default_image.empty() ? "undefined" : condor::quote(default_image));
  return jobs;
}

}  // namespace glidepod::provisioner
