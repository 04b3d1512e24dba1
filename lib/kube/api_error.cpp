#include "lib/kube/api_error.hpp"

#include <fmt/format.h>

namespace glidepod::kube {
namespace {

Json pod_details(std::string_view name) {
  return {{"name", name}, {"kind", "pods"}};
}

std::string_view cause(FieldError::Kind kind) {
  switch (kind) {
    case FieldError::Kind::required:
      return "FieldValueRequired";
    case FieldError::Kind::invalid:
      return "FieldValueInvalid";
    case FieldError::Kind::duplicate:
      return "FieldValueDuplicate";
    case FieldError::Kind::not_supported:
      return "FieldValueNotSupported";
    case FieldError::Kind::forbidden:
    case FieldError::Kind::not_served:
      return "FieldValueForbidden";
  }
  return "";
}

std::string_view words(FieldError::Kind kind) {
  switch (kind) {
    case FieldError::Kind::required:
      return "Required value";
    case FieldError::Kind::invalid:
      return "Invalid value";
    case FieldError::Kind::duplicate:
      return "Duplicate value";
    case FieldError::Kind::not_supported:
      return "Unsupported value";
    case FieldError::Kind::forbidden:
      return "Forbidden";
    case FieldError::Kind::not_served:
      return "";
  }
  return "";
}

}  // namespace

std::string FieldError::body() const {
  if (detail.empty()) return std::string(words(kind));
  if (kind == Kind::not_served) return detail;
  return fmt::format("{}: {}", words(kind), detail);
}

std::string FieldError::to_string() const {
  return fmt::format("{}: {}", field, body());
}

Json ApiError::to_json() const {
  Json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
                 {"status", "Failure"}, {"message", message}, {"reason", reason},
                 {"code", code}};
  if (!details.is_null()) status["details"] = details;
  return status;
}

Error ApiError::to_error() const {
  return Error(message).with(*this);
}

ApiError ApiError::of(const Error& error) {
  const auto* known = error.fact<ApiError>();
  return known ? *known : *internal(error.message()).fact<ApiError>();
}

Error ApiError::bad_request(std::string message) {
  return ApiError{400, "BadRequest", std::move(message)}.to_error();
}
Error ApiError::unauthorized() {
  return ApiError{401, "Unauthorized", "Unauthorized"}.to_error();
}

Error ApiError::forbidden(std::string_view user, std::string_view verb, std::string_view resource,
                          std::string_view name, std::string_view name_space) {
  std::string message =
      fmt::format("{}{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"\"", resource,
                  name.empty() ? "" : fmt::format(" \"{}\"", name), user, verb, resource);
  message +=
      name_space.empty() ? " at the cluster scope" : fmt::format(" in the namespace \"{}\"", name_space);
  return ApiError{403, "Forbidden", std::move(message), pod_details(name)}.to_error();
}
Error ApiError::denied(std::string_view name, std::string_view why) {
  return ApiError{403, "Forbidden", fmt::format("pods \"{}\" is forbidden: {}", name, why), pod_details(name)}
      .to_error();
}

Error ApiError::path_not_found() {
  return ApiError{404, "NotFound", "the server could not find the requested resource", Json::object()}
      .to_error();
}
Error ApiError::pod_not_found(std::string_view name) {
  return ApiError{404, "NotFound", fmt::format("pods \"{}\" not found", name), pod_details(name)}.to_error();
}
Error ApiError::pod_exists(std::string_view name) {
  return ApiError{409, "AlreadyExists", fmt::format("pods \"{}\" already exists", name), pod_details(name)}
      .to_error();
}
Error ApiError::conflict(std::string_view name) {
  return ApiError{
      409, "Conflict",
      fmt::format(
          "Operation cannot be fulfilled on pods \"{}\": the object has been modified; please apply your "
          "changes to the latest version and try again",
          name),
      pod_details(name)}
      .to_error();
}
Error ApiError::gone(std::string message) {
  return ApiError{410, "Expired", std::move(message)}.to_error();
}
Error ApiError::unsupported_media_type(std::string_view type) {
  return ApiError{
      415, "UnsupportedMediaType",
      fmt::format("the body of the request was in an unknown format - \"{}\" is not accepted here", type)}
      .to_error();
}
Error ApiError::method_not_allowed() {
  return ApiError{405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
                  Json::object()}
      .to_error();
}
Error ApiError::too_large() {
  return ApiError{413, "RequestEntityTooLarge", "Request entity too large"}.to_error();
}
Error ApiError::internal(const std::string& message) {
  return ApiError{500, "InternalError", "Internal error occurred: " + message}.to_error();
}
Error ApiError::unavailable(std::string message) {
  return ApiError{503, "ServiceUnavailable", std::move(message)}.to_error();
}

Error ApiError::invalid_pod(std::string_view name, const std::vector<FieldError>& errors) {
  Json causes = Json::array();
  std::string list;
  for (const auto& error : errors) {
    if (!list.empty()) list += ", ";
    list += error.to_string();
    causes.push_back({{"reason", cause(error.kind)}, {"field", error.field}, {"message", error.body()}});
  }
  if (errors.size() > 1) list = "[" + list + "]";
  return ApiError{422, "Invalid", fmt::format("Pod \"{}\" is invalid: {}", name, list),
                  Json{{"name", name}, {"kind", "Pod"}, {"causes", causes}}}
      .to_error();
}

}  // namespace glidepod::kube
