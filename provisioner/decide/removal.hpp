#pragma once

#include <vector>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// Which pods are removed now. Of those that ended: by age and number, failed ones kept longer; or by how
// often they were seen, where the policy says so. Of those that have no job for certain: those that new
// settings would make otherwise, those that take twice the time after which they have failed, and those above
// what a group has been asking for.
std::vector<Removal> removals(const Demand& demand, const Supply& supply,
                              const std::vector<Decision>& decisions, History& history, const Policy& policy,
                              Time now);

}  // namespace glidepod::provisioner
