#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "provisioner/service/cycle.hpp"
#include "provisioner/service/fitting.hpp"
#include "provisioner/service/owners.hpp"

namespace glidepod::provisioner {

// A cycle as JSON: every decision with its inputs and steps, removals, problems, what runs (running.hpp).
// applied: nullptr for a plan that was not carried out. Where most is given, it takes little more than so
// many bytes as text, and "left_out" counts the decisions, their idle jobs, the problems and the pods
// (running.hpp) that it has not.
nlohmann::json report(const Observation& seen, const Plan& plan, const Applied* applied,
                      const OwnerNaming& naming = {}, std::size_t most = k_any_size);
// Its text in one line, in which these members stand, too, in place of its own; written piece by piece.
std::string report_text(const Observation& seen, const Plan& plan, const Applied* applied,
                        const OwnerNaming& naming, std::size_t most, const nlohmann::json& more);

// What went wrong without stopping the rest.
std::vector<std::string> problems_of(const Observation& seen, const Applied* applied);

// A group as such a JSON has it.
nlohmann::json group_json(const Group& group);

// The steps of one of its decisions ({"key": WORD, "text": TEXT, "place": NAME}) as one line.
std::string reason_of(const nlohmann::json& decision);

// How long ago the cycle of such a JSON was, where that is so long that no instance can be running.
std::optional<Seconds> long_past(const nlohmann::json& report, Time now);

// Such a JSON as a table for people; an error where it is none.
Result<std::string> table(const nlohmann::json& report);

}  // namespace glidepod::provisioner
