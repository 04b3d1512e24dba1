#include "pilot-agent/trouble.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/base/text.hpp"

namespace glidepod::agent {
namespace {

// What registries and runtimes say of an image that nobody will ever get.
constexpr std::array<std::string_view, 16> k_permanent = {"manifest unknown",
                                                          "manifest_unknown",
                                                          "name unknown",
                                                          "name_unknown",
                                                          "not found",
                                                          "does not exist",
                                                          "unauthorized",
                                                          "denied",
                                                          "authentication required",
                                                          "authorization failed",
                                                          "insufficient_scope",
                                                          "403 forbidden",
                                                          "no match for platform",
                                                          "no matching manifest",
                                                          "no image found in manifest list",
                                                          "invalid reference"};
// What goes away by itself, even beside the words above. The second line is how a runtime speaks that is
// itself ending or starting.
constexpr std::array<std::string_view, 15> k_passing = {
    "too many requests",  "toomanyrequests",      "timeout",
    "deadline exceeded",  "connection refused",   "is reserved for",

    "code = unavailable", "transport is closing", "error reading from server",
    "context canceled",   "code = aborted",       "ttrpc: closed",
    "no running task",    "sandbox container",    "unknown state"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

template <std::size_t N>
bool has_any(const std::string& text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words,
                             [&text](std::string_view word) { return text.find(word) != std::string::npos; });
}

Trouble by_words(std::string_view reason, std::string_view message, Trouble::Kind otherwise) {
  const std::string text = lower(message);
  auto line = message.empty() ? std::string(reason) : one_line(message);
  if (has_any(text, k_passing)) return {Trouble::Kind::passing, std::move(line)};
  if (has_any(text, k_permanent)) return {Trouble::Kind::user, std::move(line)};
  return {otherwise, std::move(line)};
}

}  // namespace

Trouble trouble_of(const kube::ContainerStatus& status) {
  if (status.state != kube::ContainerStatus::State::waiting) return {};
  const std::string& reason = status.reason;
  if (reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "ImageInspectError" ||
      reason == "RegistryUnavailable" || reason == "SignatureValidationFailed")
    return by_words(reason, status.message, Trouble::Kind::passing);
  if (reason == "InvalidImageName" || reason == "ErrImageNeverPull")
    return {Trouble::Kind::user, status.message.empty() ? reason : one_line(status.message)};
  if (reason == "CreateContainerError" || reason == "RunContainerError")
    return by_words(reason, status.message, Trouble::Kind::user);
  if (reason == "CrashLoopBackOff") {
    // By itself it only says that the kubelet waits before it starts this image again. What the last start
    // came to is said apart.
    const auto& last = status.last_terminated;
    if (last && (last->reason == "StartError" || last->reason == "ContainerCannotRun"))
      return by_words(last->reason, last->message, Trouble::Kind::user);
    return {Trouble::Kind::passing, one_line(status.message)};
  }
  if (reason == "CreateContainerConfigError") return {Trouble::Kind::passing, one_line(status.message)};
  return {};
}

wire::Fault fault_after_patience(std::string_view message) {
  return lower(message).find("no such host") != std::string::npos ? wire::Fault::user
                                                                  : wire::Fault::infrastructure;
}

wire::Fault fault_of(const kube::Failure& failure) {
  if (failure.kind != kube::Failure::Kind::status) return wire::Fault::infrastructure;
  const std::string text = lower(failure.message);
  const bool by_rule = text.find("denied") != std::string::npos && text.find("request") != std::string::npos;
  if (failure.status == 422 || (failure.status == 403 && by_rule)) return wire::Fault::user;
  return wire::Fault::infrastructure;
}

}  // namespace glidepod::agent
