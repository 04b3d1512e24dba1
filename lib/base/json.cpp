#include "lib/base/json.hpp"

#include <nlohmann/json.hpp>

namespace glidepod {

nlohmann::json json_from(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string_view text_view(const nlohmann::json& object, const char* key) {
  const auto& value = member(object, key);
  return value.is_string() ? std::string_view(value.get_ref<const std::string&>()) : std::string_view();
}

std::string text_of(const nlohmann::json& object, const char* key) {
  return std::string(text_view(object, key));
}

}  // namespace glidepod
