#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace glidepod {

// The text of an object's member; empty if there is none, or if that is no text.
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace glidepod
