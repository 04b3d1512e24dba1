#pragma once

#include <string>
#include <vector>

#include "lib/condor/classad.hpp"
#include "lib/pattern/pattern.hpp"
#include "provisioner/supply/slot.hpp"

namespace glidepod::provisioner {

// What the collector is asked of each slot.
std::vector<std::string> slot_attributes(const std::string& pod_attribute);

// A slot from its ad; none where it is nobody's pod, or who sent it is none of those that may.
std::optional<Slot> read_slot(const condor::Ad& ad, const std::string& pod_attribute,
                              const Pattern& identities);

}  // namespace glidepod::provisioner
