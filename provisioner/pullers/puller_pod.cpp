#include "provisioner/pullers/puller_pod.hpp"

#include <fmt/format.h>

#include "lib/base/json.hpp"
#include "lib/kube/pod.hpp"
#include "lib/kube/wait_reason.hpp"

namespace glidepod::provisioner {

using State = kube::PulledImage::State;

namespace {

constexpr const char* k_container = "pull";

// The first container of this kind.
const Json& container_of(const Json& pod, bool payload) {
  static const Json none;
  for (const auto* list : {"containers", "initContainers"})
    for (const auto& container : member(member(pod, "spec"), list))
      if (text_view(container, "name").starts_with("payload-") == payload) return container;
  return none;
}

}  // namespace

std::string puller_selector(std::string_view app_name) {
  return fmt::format("app.kubernetes.io/name={},app.kubernetes.io/instance={}", k_puller_name, app_name);
}

Json make_puller(const PullPlan::New& wanted, const PullerPodSettings& settings) {
  const Json no_rights = {{"allowPrivilegeEscalation", false},
                          {"readOnlyRootFilesystem", true},
                          {"capabilities", {{"drop", {"ALL"}}}}};
  const Json limits = {{"cpu", "100m"}, {"memory", "64Mi"}, {"ephemeral-storage", "64Mi"}};
  const Json least = {{"cpu", "1m"}, {"memory", "8Mi"}, {"ephemeral-storage", "8Mi"}};
  const Json little = {{"requests", settings.guaranteed ? limits : least}, {"limits", limits}};
  Json puller = {
      {"name", k_container},
      {"image", wanted.key.image},
      {"command", {"/glidepod/bin/glue", "--version"}},
      {"resources", little},
      {"securityContext", no_rights},
      {"volumeMounts",
       {{{"name", "shared"}, {"mountPath", "/glidepod/bin"}, {"subPath", "bin"}, {"readOnly", true}}}}};
  if (!wanted.key.policy.empty()) puller["imagePullPolicy"] = wanted.key.policy;
  const Json install = {{"name", "install"},
                        {"image", wanted.pilot_image},
                        {"imagePullPolicy", "IfNotPresent"},
                        {"command", {"/usr/libexec/glidepod/glue", "--install", "/glidepod"}},
                        {"resources", little},
                        {"securityContext", no_rights},
                        {"volumeMounts", {{{"name", "shared"}, {"mountPath", "/glidepod"}}}}};
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", wanted.name},
                {"namespace", settings.name_space},
                {"labels",
                 {{"app.kubernetes.io/name", k_puller_name},
                  {"app.kubernetes.io/instance", settings.app_name},
                  {"app.kubernetes.io/component", "puller"},
                  {"app.kubernetes.io/part-of", "glidepod"},
                  {"app.kubernetes.io/managed-by", "glidepod-provisioner"}}}}},
              {"spec",
               {{"nodeName", wanted.key.node},
                {"restartPolicy", "Never"},
                {"activeDeadlineSeconds", settings.seconds},
                {"terminationGracePeriodSeconds", 1},
                {"automountServiceAccountToken", false},
                {"enableServiceLinks", false},
                {"securityContext",
                 {{"runAsNonRoot", true},
                  {"runAsUser", 65532},
                  {"runAsGroup", 65532},
                  {"fsGroup", 65532},
                  {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
                {"tolerations", {{{"operator", "Exists"}}}},  // it goes where its pilot is
                {"initContainers", Json::array({install})},
                {"containers", Json::array({puller})},
                {"volumes", {{{"name", "shared"}, {"emptyDir", {{"sizeLimit", "32Mi"}}}}}}}}};
  for (const auto& secret : wanted.key.secrets) pod["spec"]["imagePullSecrets"].push_back({{"name", secret}});
  return pod;
}

Puller read_puller(const Json& pod) {
  Puller result;
  const Json &metadata = member(pod, "metadata"), &spec = member(pod, "spec"),
             &status = member(pod, "status");
  result.name = text_view(metadata, "name");
  result.uid = text_view(metadata, "uid");
  result.node = text_view(spec, "nodeName");
  result.ending = !member(metadata, "deletionTimestamp").is_null();
  for (const auto& container : member(spec, "containers"))
    if (text_view(container, "name") == k_container) result.image = text_view(container, "image");
  // The image is there as soon as anything but its pull is told of its container. Whether it starts is for a
  // payload container to find out.
  for (const auto& container : member(status, "containerStatuses")) {
    if (text_view(container, "name") != k_container) continue;
    const Json& state = member(container, "state");
    const Json& waiting = member(state, "waiting");
    if (!member(state, "running").is_null() || !text_view(container, "imageID").empty())
      result.state = State::ready;
    if (const Json& ended = member(state, "terminated"); !ended.is_null())
      // This is also what a kubelet says that never began the container.
      result.state = text_view(ended, "reason") == "ContainerStatusUnknown" ? State::lost : State::ready;
    switch (kube::wait_reason_of(text_view(waiting, "reason"))) {
      case kube::WaitReason::pull:
      case kube::WaitReason::never:
        result.state = State::failed;
        result.reason = text_view(waiting, "reason");
        result.message = text_view(waiting, "message");
        break;
      case kube::WaitReason::create:
      case kube::WaitReason::back_off:
        result.state = State::ready;
        break;
      case kube::WaitReason::config:
      case kube::WaitReason::other:
        break;
    }
  }
  const auto phase = text_view(status, "phase");
  if (phase == "Succeeded") result.state = State::ready;
  if (phase == "Failed" && result.state != State::ready) {
    result.state = State::lost;
    result.reason = text_view(status, "reason").empty() ? "Failed" : text_view(status, "reason");
    result.message = text_view(status, "message");
  }
  return result;
}

std::optional<PullingPilot> read_pulling_pilot(const Json& pod) {
  const Json &metadata = member(pod, "metadata"), &spec = member(pod, "spec");
  const Json& annotations = member(metadata, "annotations");
  PullingPilot result;
  result.wanted = kube::read_wanted(text_view(annotations, kube::k_wanted_images));
  result.told = kube::read_pulled(text_view(annotations, kube::k_pulled_images));
  result.name = text_view(metadata, "name");
  result.uid = text_view(metadata, "uid");
  result.version = kube::version_number(text_view(metadata, "resourceVersion"));
  result.node = text_view(spec, "nodeName");
  // Who asks is at work, though a payload container has yet to start.
  const auto phase = text_view(member(pod, "status"), "phase");
  const bool runs = (phase == "Running" || (phase == "Pending" && !result.wanted.empty())) &&
                    member(metadata, "deletionTimestamp").is_null();
  if (!runs || result.node.empty() || (result.wanted.empty() && result.told.empty())) return std::nullopt;
  result.pilot_image = text_view(container_of(pod, false), "image");
  result.policy = text_view(container_of(pod, true), "imagePullPolicy");
  for (const auto& secret : member(spec, "imagePullSecrets"))
    if (const auto name = text_view(secret, "name"); !name.empty()) result.secrets.emplace_back(name);
  return result;
}

}  // namespace glidepod::provisioner
