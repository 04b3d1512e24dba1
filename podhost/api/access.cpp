#include "podhost/api/access.hpp"

#include <fmt/format.h>

namespace glidepod::podhost {

using Json = nlohmann::json;

bool is_sidecar(const Json& init_container) {
  return init_container.is_object() && init_container.value("restartPolicy", "") == "Always";
}

Result<void> refuse_pod_request(const Json& own_pod, const PodRequest& request) {
  const Json& metadata = own_pod.at("metadata");
  const bool own_namespace = metadata.at("namespace") == request.name_space;
  const bool watches = request.verb == "list" || request.verb == "watch";
  const bool own =
      own_namespace && (watches && request.name.empty() ? metadata.at("name") == request.selected_name
                                                        : metadata.at("name") == request.name);
  const bool allowed = request.verb == "get" || request.verb == "patch" || watches;
  const bool resizes = request.verb == "patch" && request.subresource == "resize";
  if (own && allowed && (request.subresource.empty() || resizes)) return {};
  const std::string user =
      fmt::format("system:serviceaccount:{}:{}", metadata.at("namespace").get<std::string>(),
                  own_pod.at("spec").value("serviceAccountName", "default"));
  const std::string resource = request.subresource.empty() ? "pods" : "pods/" + request.subresource;
  return kube::ApiError::forbidden(user, request.verb, resource, request.name, request.name_space);
}

Result<void> refuse_pod_change(const Json& old_pod, const Json& new_pod) {
  Json expected = old_pod;
  Json& containers = expected["spec"]["containers"];
  const Json& wanted = new_pod.at("spec").at("containers");
  for (std::size_t i = 1; i < containers.size() && i < wanted.size(); ++i) {
    containers[i]["image"] = wanted[i].value("image", Json());
  }
  if (expected["spec"].contains("initContainers")) {
    Json& first = expected["spec"]["initContainers"];
    const Json next = new_pod.at("spec").value("initContainers", Json::array());
    for (std::size_t i = 0; i < first.size() && i < next.size(); ++i)
      if (is_sidecar(first[i])) first[i]["image"] = next[i].value("image", Json());
  }
  // Its own end is its own affair.
  if (new_pod.at("spec").contains("activeDeadlineSeconds"))
    expected["spec"]["activeDeadlineSeconds"] = new_pod.at("spec").at("activeDeadlineSeconds");
  if (expected.at("spec") == new_pod.at("spec") && expected.at("metadata") == new_pod.at("metadata")) {
    return {};
  }
  return kube::ApiError::denied(
      old_pod.at("metadata").at("name").get<std::string>(),
      "a pod may change only its deadline and the images of its own containers other than the first");
}

}  // namespace glidepod::podhost
