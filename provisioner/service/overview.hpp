#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/terminal.hpp"
#include "provisioner/supply/slot.hpp"

namespace glidepod::provisioner {

// A report's pods as a table for people, a line a job, or a pod that has none; the worst first. As wide as
// the terminal, and at most so many lines; 0: as it comes. Names come from anybody: they are shown as
// harmless text. What is no report has no pods.
std::string overview(const nlohmann::json& report, const Terminal& terminal, Time now);

}  // namespace glidepod::provisioner
