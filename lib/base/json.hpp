#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace glidepod {

// Reading and writing are compiled once: each file that does it by the library's templates takes seconds
// more.

// Discarded (is_discarded()) if the text is no JSON.
nlohmann::json json_from(std::string_view text);
// In one line, or with so many blanks a level. What is no UTF-8 in it is replaced.
std::string json_text(const nlohmann::json& value, int indent = -1);

// An object's member; null if there is none, also of what is no object.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
// Its text; empty if there is none, or if that is no text. The view is of the object's own.
std::string_view text_view(const nlohmann::json& object, const char* key);
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace glidepod
