#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod::kube {

// A Kubernetes quantity ("250m", "1.5", "2Gi", "1e3") in thousandths, rounded up. A negative one is an Error.
Result<std::int64_t> parse_milli(std::string_view text);
// A quantity in whole units, rounded up. A negative one is an Error.
Result<std::int64_t> parse_quantity(std::string_view text);

}  // namespace glidepod::kube
