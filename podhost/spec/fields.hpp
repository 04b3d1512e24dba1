#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/kube/api_error.hpp"

namespace glidepod::podhost {

// Reads one JSON object field by field. A field of the wrong type, and by finish() every field nobody asked
// for, becomes an error under its full path. Holds references: for use within one function.
class Fields {
 public:
  using Json = nlohmann::json;
  using Errors = std::vector<kube::FieldError>;
  using Kind = kube::FieldError::Kind;

  Fields(const Json& object, std::string path, Errors* errors);

  std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  bool has(const std::string& key) const;
  std::string text(const std::string& key, std::string fallback = {});
  std::string required_text(const std::string& key);
  std::optional<std::int64_t> integer(const std::string& key);
  std::optional<bool> boolean(const std::string& key);
  std::vector<std::string> texts(const std::string& key);
  // The object or array under this key, an empty one if it is missing.
  const Json& object(const std::string& key);
  const Json& array(const std::string& key);
  // Accepts the field whatever it holds.
  void skip(const std::string& key) { used_.insert(key); }

  void fail(const std::string& key, Kind kind, std::string detail = {});
  void finish();

 private:
  const Json* find(const std::string& key);
  const Json& json_;
  std::string path_;
  Errors* errors_;
  std::set<std::string> used_;
};

}  // namespace glidepod::podhost
