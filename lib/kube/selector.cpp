#include "lib/kube/selector.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace glidepod::kube {
namespace {

constexpr std::array<std::string_view, 8> k_pod_fields = {
    "metadata.name",      "metadata.namespace",      "spec.nodeName", "spec.restartPolicy",
    "spec.schedulerName", "spec.serviceAccountName", "status.phase",  "status.podIP"};

// Splits at commas outside parentheses.
std::vector<std::string> requirements_of(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(std::exchange(part, {}));
    } else {
      part += c;
    }
  }
  parts.push_back(std::move(part));
  return parts;
}

bool valid_key(std::string_view key) {
  return !key.empty() && key.find_first_of(" \t()=!<>,") == std::string_view::npos;
}

// " in (a,b)" after the key: its values.
Result<std::vector<std::string>> values_of(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') {
    return error("unable to parse requirement: expected a list in parentheses, found \"{}\"", text);
  }
  std::vector<std::string> values;
  for (const auto& value : split(text.substr(1, text.size() - 2), ',')) values.emplace_back(trim(value));
  return values;
}

}  // namespace

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector selector;
  if (trim(text).empty()) return selector;
  for (const auto& raw : requirements_of(text)) {
    const std::string_view part = trim(raw);
    Requirement requirement{{}, Operator::exists, {}};
    if (const auto not_equal = part.find("!="); not_equal != std::string_view::npos) {
      requirement = {std::string(trim(part.substr(0, not_equal))),
                     Operator::not_in,
                     {std::string(trim(part.substr(not_equal + 2)))}};
    } else if (const auto equal = part.find('='); equal != std::string_view::npos) {
      auto value = part.substr(equal + 1);
      if (value.starts_with('=')) value.remove_prefix(1);
      requirement = {std::string(trim(part.substr(0, equal))), Operator::in, {std::string(trim(value))}};
    } else if (const auto blank = part.find(' '); blank != std::string_view::npos) {
      const std::string_view rest = trim(part.substr(blank));
      const bool in = rest.starts_with("in");
      if (!in && !rest.starts_with("notin")) return error("unable to parse requirement: \"{}\"", part);
      requirement = {std::string(part.substr(0, blank)), in ? Operator::in : Operator::not_in, {}};
      requirement.values = TRY(values_of(rest.substr(in ? 2 : 5)));
    } else if (part.starts_with('!')) {
      requirement = {std::string(trim(part.substr(1))), Operator::missing, {}};
    } else {
      requirement.key = part;
    }
    if (!valid_key(requirement.key)) return error("unable to parse requirement: \"{}\"", part);
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

bool LabelSelector::matches(const nlohmann::json& labels) const {
  return std::ranges::all_of(requirements_, [&](const Requirement& requirement) {
    const auto* value = member(labels, requirement.key.c_str()).get_ptr<const std::string*>();
    const bool listed = value && std::ranges::find(requirement.values, *value) != requirement.values.end();
    switch (requirement.op) {
      case Operator::in:
        return listed;
      case Operator::not_in:
        return !listed;
      case Operator::exists:
        return value != nullptr;
      case Operator::missing:
        return value == nullptr;
    }
    return false;
  });
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector selector;
  if (trim(text).empty()) return selector;
  for (const auto& part : split(text, ',')) {
    const auto equal = part.find('=');
    if (equal == std::string::npos) return error("invalid selector: '{}'; can't understand '{}'", text, part);
    const bool negated = part.substr(0, equal).ends_with('!');
    auto value = part.substr(equal + 1);
    if (value.starts_with('=')) value.erase(0, 1);
    Requirement requirement{std::string(trim(part.substr(0, negated ? equal - 1 : equal))),
                            std::string(trim(value)), !negated};
    if (std::ranges::find(k_pod_fields, requirement.field) == k_pod_fields.end()) {
      return error("field label not supported: {}", requirement.field);
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

bool FieldSelector::matches(const nlohmann::json& pod) const {
  return std::ranges::all_of(requirements_, [&](const Requirement& requirement) {
    const auto dot = requirement.field.find('.');
    const auto& group = member(pod, requirement.field.substr(0, dot).c_str());
    const auto value = text_of(group, requirement.field.substr(dot + 1).c_str());
    return (value == requirement.value) == requirement.equal;
  });
}

std::string FieldSelector::required(std::string_view field) const {
  for (const auto& requirement : requirements_) {
    if (requirement.equal && requirement.field == field) return requirement.value;
  }
  return {};
}

}  // namespace glidepod::kube
