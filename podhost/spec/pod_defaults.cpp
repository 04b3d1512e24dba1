#include <algorithm>

#include "lib/kube/image_reference.hpp"
#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {
namespace {

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

void fill(Json& object, const char* key, Json value) {
  Json& field = object[key];
  if (field.is_null()) field = std::move(value);
}

void drop_nulls(Json& json) {
  if (json.is_object()) {
    for (auto it = json.begin(); it != json.end();) {
      if (it->is_null()) {
        it = json.erase(it);
      } else {
        drop_nulls(*it);
        ++it;
      }
    }
  } else if (json.is_array()) {
    for (auto& item : json) drop_nulls(item);
  }
}

void container_defaults(Json& container) {
  fill(container, "resources", Json::object());
  fill(container, "terminationMessagePath", "/dev/termination-log");
  fill(container, "terminationMessagePolicy", "File");
  if (!container.contains("image") || !container["image"].is_string()) return;
  const auto image = kube::ImageReference::parse(container["image"].get<std::string>());
  fill(container, "imagePullPolicy", image && image.value().floats() ? "Always" : "IfNotPresent");
}

}  // namespace

void set_defaults(Json& pod, const SpecRules& rules) {
  drop_nulls(pod);
  if (!pod.contains("spec") || !pod["spec"].is_object()) return;
  Json& spec = pod["spec"];
  fill(spec, "restartPolicy", "Always");
  fill(spec, "terminationGracePeriodSeconds", 30);
  fill(spec, "dnsPolicy", "ClusterFirst");
  fill(spec, "securityContext", Json::object());
  fill(spec, "schedulerName", "default-scheduler");
  fill(spec, "serviceAccountName", "default");
  fill(spec, "enableServiceLinks", true);
  fill(spec, "nodeName", rules.node_name);
  for (const auto* key : {"containers", "initContainers"}) {
    if (!spec.contains(key) || !spec[key].is_array()) continue;
    for (auto& container : spec[key]) {
      if (container.is_object()) container_defaults(container);
    }
  }
  if (!spec.contains("volumes") || !spec["volumes"].is_array()) return;
  for (auto& volume : spec["volumes"]) {
    if (volume.is_object() && volume.size() == 1 && volume.contains("name"))
      volume["emptyDir"] = Json::object();
  }
}

std::string qos_class(const PodSpec& pod) {
  bool any = false;
  bool guaranteed = true;
  for (const auto* list : {&pod.init_containers, &pod.containers}) {
    for (const auto& container : *list) {
      const Resources& r = container.resources;
      any = any || r.cpu_limit_milli || r.cpu_request_milli || r.memory_limit || r.memory_request;
      guaranteed = guaranteed && r.cpu_limit_milli && r.memory_limit &&
                   r.cpu_request_milli == r.cpu_limit_milli && r.memory_request == r.memory_limit;
    }
  }
  return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

bool valid_dns_label(std::string_view name) {
  return !name.empty() && name.size() <= 63 && lower_or_digit(name.front()) && lower_or_digit(name.back()) &&
         std::ranges::all_of(name, [](char c) { return lower_or_digit(c) || c == '-'; });
}

bool valid_dns_subdomain(std::string_view name) {
  while (true) {
    const auto dot = name.find('.');
    const auto label = name.substr(0, dot);
    if (label.empty() || !lower_or_digit(label.front()) || !lower_or_digit(label.back())) return false;
    if (!std::ranges::all_of(label, [](char c) { return lower_or_digit(c) || c == '-'; })) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace glidepod::podhost
