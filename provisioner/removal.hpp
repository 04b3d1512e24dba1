#pragma once

#include <vector>

#include "provisioner/decide.hpp"

namespace glidepod::provisioner {

// Which of the pods that ended are removed now: by age and number, failed ones kept longer; or by how often
// they were seen, where the policy says so.
std::vector<Removal> removals(std::vector<EndedPod> ended, const Policy& policy, Time now);

}  // namespace glidepod::provisioner
