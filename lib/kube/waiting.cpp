#include "lib/kube/waiting.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace glidepod::kube {

Waiting waiting_of(std::string_view reason) {
  // From the kubelet's pkg/kubelet/images and pkg/kubelet/kuberuntime, 1.20 to 1.36.
  static constexpr std::array k_reasons = {
      std::pair{std::string_view("ErrImagePull"), Waiting::pull},
      std::pair{std::string_view("ImagePullBackOff"), Waiting::pull},
      std::pair{std::string_view("ImageInspectError"), Waiting::pull},
      std::pair{std::string_view("RegistryUnavailable"), Waiting::pull},
      std::pair{std::string_view("SignatureValidationFailed"), Waiting::never},
      std::pair{std::string_view("InvalidImageName"), Waiting::never},
      std::pair{std::string_view("ErrImageNeverPull"), Waiting::never},
      std::pair{std::string_view("CreateContainerError"), Waiting::create},
      std::pair{std::string_view("RunContainerError"), Waiting::create},
      std::pair{std::string_view("CreateContainerConfigError"), Waiting::config},
      std::pair{std::string_view("CrashLoopBackOff"), Waiting::back_off},
  };
  const auto found = std::ranges::find(k_reasons, reason, [](const auto& known) { return known.first; });
  return found == k_reasons.end() ? Waiting::other : found->second;
}

bool never_started(std::string_view terminated_reason) {
  return terminated_reason == "StartError" || terminated_reason == "ContainerCannotRun";
}

}  // namespace glidepod::kube
