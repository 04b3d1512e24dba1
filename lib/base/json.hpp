#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace glidepod {

// Reading and writing JSON, compiled once. A file that does this by the library's templates takes seconds
// more to compile.

// Parses a text. If the text is no JSON, the result is discarded (is_discarded()).
nlohmann::json json_from(std::string_view text);
// The text of a JSON value: in one line, or indented by this many blanks. Bytes that are not UTF-8 are
// replaced.
std::string json_text(const nlohmann::json& value, int indent = -1);

// A member of an object; null if there is none, or if the value is no object.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
// A member's text; empty if there is no such member, or if it is no text. The view is into the object.
std::string_view text_view(const nlohmann::json& object, const char* key);
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace glidepod
