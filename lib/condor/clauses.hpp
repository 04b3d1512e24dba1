#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glidepod::condor {

// The clauses of a conjunction: "a && (b && c)" is a, b and c, without brackets around them. Any other
// expression, and one that nests too deeply, is the only element.
std::vector<std::string> conjuncts(std::string_view expression);

// An expression that is about the other ad only, as an expression over that one: "TARGET.A > 1" is "A > 1".
// None if it has an attribute of MY, or one without a scope.
std::optional<std::string> over_target(std::string_view expression);

}  // namespace glidepod::condor
