#pragma once

#include <set>
#include <string>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// Learns from how pilots fared which nodes are to be avoided: those on which the last few have failed, one
// after the other, while the same group works on another node that is not avoided. After its pause a node is
// tried again; the next failure there makes a pause that is twice as long, a pilot that works forgets it.
void judge_nodes(std::map<std::string, NodeMemory>& nodes, const Supply& supply,
                 const PolicySettings& settings, Time now);

// Those that new pods are kept from.
std::vector<std::string> avoided(const std::map<std::string, NodeMemory>& nodes, Time now);

// The group without what the nodes have to answer for: neither its breaker nor its waste counts that. But
// what fails on more than one node, and has worked nowhere since the breaker closed last, is not the nodes'
// doing. Of the crashes only those since the begin of waste_window are among the wasted.
GroupSupply without_nodes(GroupSupply supply, const std::map<std::string, NodeMemory>& nodes, Time closed,
                          Time wasted_since);

}  // namespace glidepod::provisioner
