#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace glidepod::kube {

using Json = nlohmann::json;

// One complaint about a field: "spec.containers[0].image: Required value".
struct FieldError {
  enum class Kind : std::uint8_t { required, invalid, duplicate, not_supported, forbidden, not_served };
  Kind kind;
  std::string field;
  std::string detail;

  std::string to_string() const;
  // The same without the field, as a Status has it in details.causes.
  std::string body() const;
};

// A failed API request as Kubernetes words it; to_json() is the Status object of its answer.
struct ApiError {
  int code = 500;
  std::string reason;
  std::string message;
  Json details = nullptr;

  Json to_json() const;

  static ApiError bad_request(std::string message);
  static ApiError unauthorized();
  // What authorization refuses, and what a policy refuses to a request that authorization let through.
  static ApiError forbidden(std::string_view user, std::string_view verb, std::string_view resource,
                            std::string_view name, std::string_view ns);
  static ApiError denied(std::string_view name, std::string_view why);
  static ApiError path_not_found();
  static ApiError pod_not_found(std::string_view name);
  static ApiError pod_exists(std::string_view name);
  static ApiError conflict(std::string_view name);
  static ApiError gone(std::string message);
  static ApiError unsupported_media_type(std::string_view type);
  static ApiError method_not_allowed();
  static ApiError too_large();
  static ApiError internal(std::string message);
  static ApiError unavailable(std::string message);
  static ApiError invalid_pod(std::string_view name, const std::vector<FieldError>& errors);
};

// A T or the ApiError to answer with.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Outcome(ApiError error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  const ApiError& error() const { return *std::get_if<1>(&state_); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<T, ApiError> state_;
};

}  // namespace glidepod::kube
