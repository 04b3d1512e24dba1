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

ApiError ApiError::bad_request(std::string message) {
  return {400, "BadRequest", std::move(message)};
}
ApiError ApiError::unauthorized() {
  return {401, "Unauthorized", "Unauthorized"};
}

ApiError ApiError::forbidden(std::string_view user, std::string_view verb, std::string_view resource,
                             std::string_view name, std::string_view ns) {
  std::string message =
      fmt::format("{}{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"\"", resource,
                  name.empty() ? "" : fmt::format(" \"{}\"", name), user, verb, resource);
  message += ns.empty() ? " at the cluster scope" : fmt::format(" in the namespace \"{}\"", ns);
  return {403, "Forbidden", std::move(message), pod_details(name)};
}
ApiError ApiError::denied(std::string_view name, std::string_view why) {
  return {403, "Forbidden", fmt::format("pods \"{}\" is forbidden: {}", name, why), pod_details(name)};
}

ApiError ApiError::path_not_found() {
  return {404, "NotFound", "the server could not find the requested resource", Json::object()};
}
ApiError ApiError::pod_not_found(std::string_view name) {
  return {404, "NotFound", fmt::format("pods \"{}\" not found", name), pod_details(name)};
}
ApiError ApiError::pod_exists(std::string_view name) {
  return {409, "AlreadyExists", fmt::format("pods \"{}\" already exists", name), pod_details(name)};
}
ApiError ApiError::conflict(std::string_view name) {
  return {409, "Conflict",
          fmt::format(
              "Operation cannot be fulfilled on pods \"{}\": the object has been modified; please apply your "
              "changes to the latest version and try again",
              name),
          pod_details(name)};
}
ApiError ApiError::gone(std::string message) {
  return {410, "Expired", std::move(message)};
}
ApiError ApiError::unsupported_media_type(std::string_view type) {
  return {
      415, "UnsupportedMediaType",
      fmt::format("the body of the request was in an unknown format - \"{}\" is not accepted here", type)};
}
ApiError ApiError::method_not_allowed() {
  return {405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
          Json::object()};
}
ApiError ApiError::too_large() {
  return {413, "RequestEntityTooLarge", "Request entity too large"};
}
ApiError ApiError::internal(std::string message) {
  return {500, "InternalError", "Internal error occurred: " + message};
}
ApiError ApiError::unavailable(std::string message) {
  return {503, "ServiceUnavailable", std::move(message)};
}

ApiError ApiError::invalid_pod(std::string_view name, const std::vector<FieldError>& errors) {
  Json causes = Json::array();
  std::string list;
  for (const auto& error : errors) {
    if (!list.empty()) list += ", ";
    list += error.to_string();
    causes.push_back({{"reason", cause(error.kind)}, {"field", error.field}, {"message", error.body()}});
  }
  if (errors.size() > 1) list = "[" + list + "]";
  return {422, "Invalid", fmt::format("Pod \"{}\" is invalid: {}", name, list),
          Json{{"name", name}, {"kind", "Pod"}, {"causes", causes}}};
}

}  // namespace glidepod::kube
