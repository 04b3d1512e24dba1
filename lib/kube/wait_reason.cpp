#include "lib/kube/wait_reason.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace glidepod::kube {

WaitReason wait_reason_of(std::string_view reason) {
  // From the kubelet's pkg/kubelet/images and pkg/kubelet/kuberuntime, 1.20 to 1.36.
  static constexpr std::array k_reasons = {
      std::pair{std::string_view("ErrImagePull"), WaitReason::pull},
      std::pair{std::string_view("ImagePullBackOff"), WaitReason::pull},
      std::pair{std::string_view("ImageInspectError"), WaitReason::pull},
      std::pair{std::string_view("RegistryUnavailable"), WaitReason::pull},
      std::pair{std::string_view("SignatureValidationFailed"), WaitReason::never},
      std::pair{std::string_view("InvalidImageName"), WaitReason::never},
      std::pair{std::string_view("ErrImageNeverPull"), WaitReason::never},
      std::pair{std::string_view("CreateContainerError"), WaitReason::create},
      std::pair{std::string_view("RunContainerError"), WaitReason::create},
      std::pair{std::string_view("CreateContainerConfigError"), WaitReason::config},
      std::pair{std::string_view("CrashLoopBackOff"), WaitReason::back_off},
  };
  const auto found = std::ranges::find(k_reasons, reason, [](const auto& known) { return known.first; });
  return found == k_reasons.end() ? WaitReason::other : found->second;
}

bool never_started(std::string_view terminated_reason) {
  return terminated_reason == "StartError" || terminated_reason == "ContainerCannotRun";
}

}  // namespace glidepod::kube
