#pragma once

#include "provisioner/decide/places.hpp"

namespace glidepod::provisioner {

// Whether all pods of the group have waited for a node for longer than unschedulable_limit.
bool homeless(const GroupSupply& supply, const PolicySettings& settings, Time now);

// Lowers what the decisions would submit to what the limits on all groups together leave (ramp_up, max_idle,
// max_running, max_pods, the quota), and gives that out a pod at a time: to the owner who has least, waiting
// and claimed pods included, and of this owner's groups to one after the other. As the negotiator slices its
// pie (Matchmaker::calculateNormalizationFactor), an owner's pods count by the effective priority: who has
// half of it gets twice as many. Which group and which of two equal owners comes first is another in each
// cycle. Pods of homeless groups count in no limit. With named places each pod goes to one of them, by
// placing, or is not made.
void share(std::vector<Decision>& decisions, const View& view, std::uint64_t cycle, Placing* placing);

}  // namespace glidepod::provisioner
