#pragma once

#include <map>
#include <string>
#include <vector>

#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {

// What fieldRef and resourceFieldRef can name beside the spec.
struct PodFacts {
  std::map<std::string, std::string> labels, annotations;
  std::string node_name, host_ip, pod_ip;
  std::int64_t node_cpu_milli = 0, node_memory = 0;  // where a container has no limit
};

// $(NAME) becomes the variable's value, $$ a $; an unknown name stays as it is written.
std::string expand(std::string_view text, const std::map<std::string, std::string>& variables);

// The container's variables in the end: sources resolved, $(NAME) of earlier variables expanded.
std::map<std::string, std::string> make_environment(const PodSpec& pod, const ContainerSpec& container,
                                                    const PodFacts& facts);

// The value of "metadata.labels['x']" and the like; empty if there is none.
std::string field_value(const PodSpec& pod, const std::string& path, const PodFacts& facts);

}  // namespace glidepod::podhost
