#include "podhost/api/patch.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "podhost/api/json_input.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;
using kube::ApiError;

constexpr std::size_t k_operations = 1000;  // of a JSON patch
constexpr const char* k_deadline = "activeDeadlineSeconds";

// The lists of a pod that strategic merge joins by a key; all others are replaced as a whole.
const std::map<std::string, std::string>& merge_keys() {
  static const std::map<std::string, std::string> keys = {
      {"containers", "name"},       {"initContainers", "name"},    {"env", "name"},
      {"volumes", "name"},          {"volumeMounts", "mountPath"}, {"ports", "containerPort"},
      {"imagePullSecrets", "name"}, {"hostAliases", "ip"}};
  return keys;
}

bool directive(const std::string& key) {
  return key.starts_with("$");
}

void strategic_merge(Json& target, const Json& patch);

void merge_list(Json& target, const Json& patch, const std::string& key) {
  if (!target.is_array()) target = Json::array();
  for (const auto& item : patch) {
    if (item.is_object() && item.value("$patch", "") == "replace") {
      target = Json::array();
      continue;
    }
    if (!item.is_object() || !item.contains(key)) {
      throw std::invalid_argument("map: does not contain declared merge key: " + key);
    }
    auto found = target.begin();
    while (found != target.end() &&
           !(found->is_object() && found->contains(key) && found->at(key) == item.at(key))) {
      ++found;
    }
    if (item.value("$patch", "") == "delete") {
      if (found != target.end()) target.erase(found);
    } else if (found == target.end()) {
      Json fresh = Json::object();
      strategic_merge(fresh, item);
      target.push_back(std::move(fresh));
    } else {
      strategic_merge(*found, item);
    }
  }
}

void strategic_merge(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object() || patch.value("$patch", "") == "replace") target = Json::object();
  for (const auto& [key, value] : patch.items()) {
    if (directive(key)) continue;
    const auto list = merge_keys().find(key);
    if (value.is_null()) {
      target.erase(key);
    } else if (value.is_object()) {
      strategic_merge(target[key], value);
    } else if (value.is_array() && list != merge_keys().end()) {
      merge_list(target[key], value, list->second);
    } else {
      target[key] = value;
    }
  }
}

// Takes the images out of a spec, so that what is left can be compared.
void forget_images(Json& spec) {
  for (const auto* key : {"containers", "initContainers"}) {
    if (!spec.contains(key) || !spec[key].is_array()) continue;
    for (auto& container : spec[key]) {
      if (container.is_object()) container.erase("image");
    }
  }
}

// A deadline may be set and drawn nearer (Kubernetes' ValidatePodUpdate).
std::optional<kube::FieldError> check_deadline(const Json& before, const Json& after) {
  const auto wrong = [](const std::string& detail) {
    return kube::FieldError{kube::FieldError::Kind::invalid, fmt::format("spec.{}", k_deadline), detail};
  };
  const Json old_value = before.value(k_deadline, Json());
  const Json new_value = after.value(k_deadline, Json());
  if (new_value == old_value) return std::nullopt;
  if (new_value.is_null()) return wrong("must not update from a positive integer to nil value");
  if (!new_value.is_number_integer() || new_value < 1 || new_value > INT32_MAX)
    return wrong("must be between 1 and 2147483647, inclusive");
  if (!old_value.is_null() && new_value > old_value)
    return wrong("must be less than or equal to previous value");
  return std::nullopt;
}

}  // namespace

Result<Json> apply_patch(const Json& pod, std::string_view content_type, std::string_view body) {
  const std::string type(trim(content_type.substr(0, content_type.find(';'))));
  const bool strategic = type == "application/strategic-merge-patch+json";
  const bool merge = type == "application/merge-patch+json";
  if (!strategic && !merge && type != "application/json-patch+json")
    return ApiError::unsupported_media_type(type);
  const auto parsed = parse_json(body);
  if (!parsed) return ApiError::bad_request("error decoding patch: it " + parsed.error().message());
  const Json& patch = parsed.value();
  if (!strategic && !merge) {
    if (!patch.is_array()) return ApiError::bad_request("error decoding patch: a JSON patch must be a list");
    if (patch.size() > k_operations) {
      return ApiError{413, "RequestEntityTooLarge",
                      fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                                  k_operations, patch.size())}
          .to_error();
    }
    auto result = apply_json_patch(pod, patch);
    if (result) return std::move(result).value();
    return ApiError{
        422, "Invalid",
        "the server rejected our request due to an error in our request: " + result.error().message()}
        .to_error();
  }
  if (!patch.is_object()) return ApiError::bad_request("error decoding patch: it must be an object");
  try {
    Json result = pod;
    if (strategic) {
      strategic_merge(result, patch);
    } else {
      result.merge_patch(patch);
    }
    return result;
  } catch (const std::exception& failure) {
    return ApiError::bad_request(std::string("error applying patch: ") + failure.what());
  }
}

Result<Json> check_update(const Json& old_pod, Json new_pod) {
  const Json& old_metadata = old_pod.at("metadata");
  const std::string name = old_metadata.at("name").get<std::string>();
  if (!new_pod.is_object() || !new_pod.contains("metadata") || !new_pod["metadata"].is_object() ||
      !new_pod.contains("spec") || !new_pod["spec"].is_object()) {
    return ApiError::bad_request("the pod must have metadata and spec");
  }
  Json& metadata = new_pod["metadata"];
  const Json version = metadata.value("resourceVersion", Json());
  if (version.is_string() && !version.get_ref<const std::string&>().empty() &&
      version != old_metadata.at("resourceVersion")) {
    return ApiError::conflict(name);
  }
  if (metadata.value("uid", old_metadata.at("uid")) != old_metadata.at("uid"))
    return ApiError::conflict(name);
  if (metadata.value("name", Json()) != old_metadata.at("name")) {
    return ApiError::invalid_pod(name,
                                 {{kube::FieldError::Kind::invalid, "metadata.name", "field is immutable"}});
  }
  Json kept = old_metadata;
  for (const auto* key : {"labels", "annotations"}) {
    kept.erase(key);
    if (!metadata.contains(key) || metadata[key].is_null()) continue;
    if (!metadata[key].is_object())
      return ApiError::bad_request(fmt::format("metadata.{} must be an object", key));
    for (const auto& [label, value] : metadata[key].items()) {
      if (!value.is_string())
        return ApiError::bad_request(fmt::format("metadata.{}[{}] must be a string", key, label));
    }
    if (!metadata[key].empty()) kept[key] = metadata[key];
  }
  Json before = old_pod.at("spec");
  Json after = new_pod["spec"];
  forget_images(before);
  forget_images(after);
  if (auto wrong = check_deadline(before, after)) return ApiError::invalid_pod(name, {*std::move(wrong)});
  before.erase(k_deadline);
  after.erase(k_deadline);
  if (before != after) {
    return ApiError::invalid_pod(name,
                                 {{kube::FieldError::Kind::forbidden, "spec",
                                   "pod updates may not change fields other than `spec.containers[*].image`, "
                                   "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`\n" +
                                       json_text(Json::diff(before, after))}});
  }
  std::vector<kube::FieldError> errors;
  for (const std::string key : {"containers", "initContainers"}) {
    const Json list = new_pod["spec"].value(key, Json::array());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Json image = list[i].value("image", Json());
      if (!image.is_string() || trim(image.get<std::string>()).empty()) {
        errors.push_back({kube::FieldError::Kind::required, fmt::format("spec.{}[{}].image", key, i), ""});
      }
    }
  }
  if (!errors.empty()) return ApiError::invalid_pod(name, errors);
  Json result = old_pod;
  result["metadata"] = std::move(kept);
  result["spec"] = std::move(new_pod["spec"]);
  return result;
}

}  // namespace glidepod::podhost
