#include "podhost/spec/fields.hpp"

#include <fmt/format.h>

namespace glidepod::podhost {
namespace {
using Json = nlohmann::json;
const Json k_empty_object = Json::object();
const Json k_empty_array = Json::array();
}  // namespace

Fields::Fields(const Json& object, std::string path, Errors* errors)
    : json_(object.is_object() ? object : k_empty_object), path_(std::move(path)), errors_(errors) {
  if (!object.is_object()) errors_->push_back({Kind::invalid, path_, "must be an object"});
}

bool Fields::has(const std::string& key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

const Json* Fields::find(const std::string& key) {
  used_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::text(const std::string& key, std::string fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (value->is_string()) return value->get<std::string>();
  fail(key, Kind::invalid, "must be a string");
  return fallback;
}

std::string Fields::required_text(const std::string& key) {
  std::string value = text(key);
  if (value.empty()) fail(key, Kind::required);
  return value;
}

std::optional<std::int64_t> Fields::integer(const std::string& key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_number_integer()) return value->get<std::int64_t>();
  fail(key, Kind::invalid, "must be an integer");
  return std::nullopt;
}

std::optional<bool> Fields::boolean(const std::string& key) {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, Kind::invalid, "must be true or false");
  return std::nullopt;
}

std::vector<std::string> Fields::texts(const std::string& key) {
  std::vector<std::string> values;
  for (const auto& value : array(key)) {
    if (value.is_string()) {
      values.push_back(value.get<std::string>());
    } else {
      fail(key, Kind::invalid, "must be a list of strings");
    }
  }
  return values;
}

const Json& Fields::object(const std::string& key) {
  const Json* value = find(key);
  if (!value) return k_empty_object;
  if (value->is_object()) return *value;
  fail(key, Kind::invalid, "must be an object");
  return k_empty_object;
}

const Json& Fields::array(const std::string& key) {
  const Json* value = find(key);
  if (!value) return k_empty_array;
  if (value->is_array()) return *value;
  fail(key, Kind::invalid, "must be a list");
  return k_empty_array;
}

void Fields::fail(const std::string& key, Kind kind, std::string detail) {
  errors_->push_back({kind, path_of(key), std::move(detail)});
}

void Fields::finish() {
  for (const auto& [key, value] : json_.items()) {
    if (!used_.contains(key) && !value.is_null())
      fail(key, Kind::not_served, "podhost does not support this field");
  }
}

}  // namespace glidepod::podhost
