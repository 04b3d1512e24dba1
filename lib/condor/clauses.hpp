#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glidepod::condor {

// The clauses of a conjunction: "a && (b && c)" gives a, b and c, without the brackets around them. Any other
// expression, and one that is nested too deeply, is returned as the only element.
std::vector<std::string> conjuncts(std::string_view expression);

// The same of a disjunction: "a || (b || c)" gives a, b and c.
std::vector<std::string> disjuncts(std::string_view expression);

// Turns an expression that is about the other ad only into one over that ad: "TARGET.A > 1" becomes "A > 1".
// None if the expression has an attribute of MY, or one without a scope.
std::optional<std::string> over_target(std::string_view expression);

}  // namespace glidepod::condor
