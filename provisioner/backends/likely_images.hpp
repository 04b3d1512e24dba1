#pragma once

#include <map>
#include <string>
#include <vector>

#include "provisioner/demand/demand.hpp"
#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// Which pilots are told what their group's jobs want (lib/kube/pulls.hpp): those that make containers ready
// while nobody waits. Each time is a request to the API.

// A pilot is told at most once in that time, and so many in a cycle.
inline constexpr Seconds k_told_again{300};
inline constexpr std::size_t k_most_told = 20;

// What the annotation is to say of a group.
std::string likely_text(const GroupDemand& demand);

// Whether a pilot that was told the one would make other containers ready by the other: a quarter of the jobs
// want another image.
bool differs(std::string_view told, std::string_view now);

// The texts by pod's name, for the pods of the last look; told is when each was told last. A group without
// jobs changes nothing: what it wanted last is the best guess.
std::map<std::string, std::string> to_tell(const std::vector<Pod>& pods,
                                           const std::map<Group, GroupDemand>& demand,
                                           const std::map<std::string, Time>& told, Time now);

}  // namespace glidepod::provisioner
