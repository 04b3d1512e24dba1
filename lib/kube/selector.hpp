#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::kube {

// A labelSelector, such as "a=b,c!=d,e in (f,g),h notin (i),j,!k".
class LabelSelector {
 public:
  static Result<LabelSelector> parse(std::string_view text);
  // labels: metadata.labels, an object or null.
  bool matches(const nlohmann::json& labels) const;

 private:
  enum class Operator : std::uint8_t { in, not_in, exists, missing };
  struct Requirement {
    std::string key;
    Operator op;
    std::vector<std::string> values;
  };
  std::vector<Requirement> requirements_;
};

// A fieldSelector for pods, such as "metadata.name=x,status.phase!=Running". An unknown field is an Error, as
// in Kubernetes.
class FieldSelector {
 public:
  static Result<FieldSelector> parse(std::string_view text);
  bool matches(const nlohmann::json& pod) const;
  // The value that the selector requires of this field by "="; empty if it requires none.
  std::string required(std::string_view field) const;

 private:
  struct Requirement {
    std::string field, value;
    bool equal;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace glidepod::kube
