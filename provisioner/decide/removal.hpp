#pragma once

#include <vector>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// Which of the pods that ended are removed now: by age and number, failed ones kept longer; or by how often
// they were seen, where the policy says so. And those that could not get their image for twice the pull
// limit: they would hold their place for ever.
std::vector<Removal> removals(std::vector<EndedPod> ended, const std::vector<StuckPod>& stuck,
                              const Policy& policy, Time now);

}  // namespace glidepod::provisioner
