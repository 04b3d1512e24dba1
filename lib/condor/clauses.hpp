#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glidepod::condor {

// What an expression wants all of: "a && (b && c)" is a, b and c, without brackets around them. What is no
// such expression is the only element, as is one that nests too deeply.
std::vector<std::string> conjuncts(std::string_view expression);

// What is said of the other ad only, as an expression over that one: "TARGET.A > 1" is "A > 1". None where
// something else is meant: an attribute of MY, or of whichever ad has it.
std::optional<std::string> over_target(std::string_view expression);

}  // namespace glidepod::condor
