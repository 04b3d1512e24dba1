#include "podhost/spec/environment.hpp"

namespace glidepod::podhost {
namespace {

std::string subscript(const std::string& path, const std::map<std::string, std::string>& values) {
  const auto open = path.find("['");
  const auto found = values.find(path.substr(open + 2, path.size() - open - 4));
  return found == values.end() ? "" : found->second;
}

// Rounded up, as the kubelet does.
std::int64_t divide(std::int64_t amount, std::int64_t divisor) {
  return (amount + divisor - 1) / divisor;
}

std::string resource_value(const PodSpec& pod, const ContainerSpec& own, const EnvVar& var,
                           const PodFacts& facts) {
  const ContainerSpec* named = var.container.empty() ? &own : pod.find(var.container);
  const Resources resources = named ? named->resources : Resources{};
  const bool limits = var.value.starts_with("limits.");
  if (var.value.ends_with(".cpu")) {
    const std::int64_t milli = limits ? resources.cpu_limit_milli.value_or(facts.node_cpu_milli)
                                      : resources.cpu_request_milli.value_or(0);
    return std::to_string(divide(milli, var.divisor_milli ? var.divisor_milli : 1000));
  }
  const std::int64_t bytes =
      limits ? resources.memory_limit.value_or(facts.node_memory) : resources.memory_request.value_or(0);
  return std::to_string(divide(bytes, std::max<std::int64_t>(var.divisor_milli / 1000, 1)));
}

}  // namespace

std::string expand(std::string_view text, const std::map<std::string, std::string>& variables) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      result += text[i];
    } else if (text[i + 1] == '$') {
      result += '$';
      ++i;
    } else if (const auto close = text.find(')', i); text[i + 1] == '(' && close != std::string_view::npos) {
      const std::string name(text.substr(i + 2, close - i - 2));
      const auto found = variables.find(name);
      result += found == variables.end() ? "$(" + name + ")" : found->second;
      i = close;
    } else {
      result += '$';
    }
  }
  return result;
}

std::string field_value(const PodSpec& pod, const std::string& path, const PodFacts& facts) {
  if (path == "metadata.name") return pod.name;
  if (path == "metadata.namespace") return pod.name_space;
  if (path == "metadata.uid") return pod.uid;
  if (path == "spec.nodeName") return facts.node_name;
  if (path == "spec.serviceAccountName") return pod.service_account;
  if (path == "status.hostIP") return facts.host_ip;
  if (path == "status.podIP") return facts.pod_ip;
  if (path.starts_with("metadata.labels['")) return subscript(path, facts.labels);
  if (path.starts_with("metadata.annotations['")) return subscript(path, facts.annotations);
  return {};
}

std::map<std::string, std::string> make_environment(const PodSpec& pod, const ContainerSpec& container,
                                                    const PodFacts& facts) {
  // podhost gives no devices. An image may ask for all GPUs of the machine, and NVIDIA's runtime would
  // believe it.
  std::map<std::string, std::string> result{{"NVIDIA_VISIBLE_DEVICES", "void"}};
  for (const auto& var : container.env) {
    switch (var.source) {
      case EnvVar::Source::literal:
        result[var.name] = expand(var.value, result);
        break;
      case EnvVar::Source::field:
        result[var.name] = field_value(pod, var.value, facts);
        break;
      case EnvVar::Source::resource:
        result[var.name] = resource_value(pod, container, var, facts);
        break;
    }
  }
  return result;
}

}  // namespace glidepod::podhost
