#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/kube/quantity.hpp"
#include "provisioner/backends/pods.hpp"

namespace glidepod::provisioner {

std::string pod_name(std::string_view app_name, const Group& group, Time cycle, std::int64_t number) {
  const auto tail = fmt::format("-{}-{:x}-{:x}", group.hash(), cycle.time_since_epoch().count(), number);
  return fmt::format("{}{}", app_name.substr(0, 63 - std::min<std::size_t>(tail.size(), 62)), tail);
}

Result<Group> group_of_pod(const Json& pod) {
  Group group;
  const auto &labels = member(member(pod, "metadata"), "labels"),
             &annotations = member(member(pod, "metadata"), "annotations");
  const std::pair<const char*, std::int64_t Group::*> numbers[] = {{"PodCPUs", &Group::cpus},
                                                                   {"PodGPUs", &Group::gpus},
                                                                   {"PodMemory", &Group::memory_mb},
                                                                   {"PodDisk", &Group::disk_kb}};
  for (const auto& [label, field] : numbers)
    if (member(labels, label).is_string())
      group.*field = TRY(parse_integer(text_view(labels, label)).in(label));
  for (const auto& [key, variable, field] : k_group_texts) group.*field = text_of(annotations, key);
  return group;
}

Result<Resources> resources_of_pod(const Json& pod) {
  Resources sum;
  const auto add = [&sum](const Json& container) -> Result<void> {
    const auto& resources = member(container, "resources");
    const auto quantity = [&resources](const char* name,
                                       const char* of = "requests") -> Result<std::int64_t> {
      const auto& value = member(member(resources, of), name);
      if (value.is_null()) return std::int64_t{0};
      const auto text = value.is_string() ? value.get<std::string>() : json_text(value);
      return kube::parse_milli(text).in(name);
    };
    sum.cpu_milli += TRY(quantity("cpu"));
    sum.memory_bytes += TRY(quantity("memory")) / 1000;
    sum.disk_bytes += TRY(quantity("ephemeral-storage")) / 1000;
    sum.gpus += TRY(quantity("nvidia.com/gpu")) / 1000;
    for (const auto& [name, value] : member(resources, "requests").items())
      if (name.find('/') != std::string::npos && name != "nvidia.com/gpu")
        sum.devices[name] += TRY(quantity(name.c_str())) / 1000;
    sum.limit_cpu_milli += TRY(quantity("cpu", "limits"));
    sum.limit_memory_bytes += TRY(quantity("memory", "limits")) / 1000;
    return {};
  };
  for (const auto& container : member(member(pod, "spec"), "containers")) TRY(add(container));
  for (const auto& container : member(member(pod, "spec"), "initContainers"))
    if (text_view(container, "restartPolicy") == "Always") TRY(add(container));
  return sum;
}

}  // namespace glidepod::provisioner
