#include "lib/base/json.hpp"

#include <nlohmann/json.hpp>

namespace glidepod {

std::string text_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace glidepod
