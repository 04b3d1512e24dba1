#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::kube {

using Json = nlohmann::json;

// One complaint about a field: "spec.containers[0].image: Required value".
struct FieldError {
  enum class Kind : std::uint8_t { required, invalid, duplicate, not_supported, forbidden, not_served };
  Kind kind;
  std::string field;
  std::string detail;

  std::string to_string() const;
  // The complaint without the field, as it stands in details.causes of a Status.
  std::string body() const;
};

// A failed API request in Kubernetes' words. This is the fact in the Errors of a server of the API.
struct ApiError {
  int code = 500;
  std::string reason;
  std::string message;
  Json details = nullptr;

  // The Status object to answer with.
  Json to_json() const;
  // An Error with the message, and with this ApiError as its fact.
  Error to_error() const;
  // The ApiError of an Error; an Error without one becomes an internal error.
  static ApiError of(const Error& error);

  static Error bad_request(std::string message);
  static Error unauthorized();
  // Refusals. The first is by authorization, the second by a policy after authorization has let the request
  // through.
  static Error forbidden(std::string_view user, std::string_view verb, std::string_view resource,
                         std::string_view name, std::string_view name_space);
  static Error denied(std::string_view name, std::string_view why);
  static Error path_not_found();
  static Error pod_not_found(std::string_view name);
  static Error pod_exists(std::string_view name);
  static Error conflict(std::string_view name);
  static Error gone(std::string message);
  static Error unsupported_media_type(std::string_view type);
  static Error method_not_allowed();
  static Error too_large();
  static Error internal(const std::string& message);
  static Error unavailable(std::string message);
  static Error invalid_pod(std::string_view name, const std::vector<FieldError>& errors);
};

}  // namespace glidepod::kube
