#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "provisioner/service/cycle.hpp"

namespace glidepod::provisioner {

// A cycle as JSON: every decision with its inputs and reason, removals, problems, what runs (overview.hpp).
// applied: nullptr for a plan that was not carried out.
nlohmann::json report(const Observation& seen, const Plan& plan, const Applied* applied);

// Such a JSON as a table for people; an error where it is none.
Result<std::string> table(const nlohmann::json& report);

}  // namespace glidepod::provisioner
