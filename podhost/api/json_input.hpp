#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod::podhost {

// A client's text as JSON. Nesting beyond what any pod has is refused: comparing, copying and writing a value
// takes stack by its depth. An error reads on from "the body of the request".
Result<nlohmann::json> parse_json(std::string_view text);

// Applies a JSON patch (RFC 6902), a list. The operation "copy", by which a small patch makes a huge object,
// is refused, as is an index beyond the end of a list. An error is a line for the client.
Result<nlohmann::json> apply_json_patch(nlohmann::json document, const nlohmann::json& patch);

}  // namespace glidepod::podhost
