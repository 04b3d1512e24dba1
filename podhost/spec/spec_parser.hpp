#pragma once

#include <set>
#include <string>
#include <vector>

#include "podhost/spec/fields.hpp"
#include "podhost/spec/pod_spec.hpp"

namespace glidepod::podhost {

// Turns a pod's JSON into a PodSpec and the list of all that is wrong with it. pod_spec.cpp has the pod's and
// its volumes' part, container_spec.cpp the containers'.
struct SpecParser {
  const SpecRules& rules;
  Fields::Errors errors;
  std::vector<std::string> warnings;
  PodSpec pod;
  SecurityContext pod_security;

  void metadata(const Json& json);
  void spec(const Json& json);
  void security(const Json& json, const std::string& path);
  void seccomp(Fields& fields, SecurityContext* security);
  void volume(const Json& json, const std::string& path);
  void projected(const Json& json, const std::string& path, Volume* volume);
  void downward_api(const Json& items, const std::string& path, Volume* volume);

  // Needs the pod's volumes and security context to have been read.
  ContainerSpec container(const Json& json, const std::string& path, bool init);
  SecurityContext container_security(const Json& json, const std::string& path);
  void env(const Json& list, const std::string& path, ContainerSpec* container);
  EnvVar env_source(const Json& json, const std::string& path);
  void mounts(const Json& list, const std::string& path, ContainerSpec* container);
  void ports(const Json& list, const std::string& path);
  Resources resources(const Json& json, const std::string& path);

  // An error unless the field is missing or has one of these values.
  void only(Fields& fields, const std::string& key, const std::set<std::string>& accepted);
  // An integer from least to 2^31 - 1, what Kubernetes has for users, groups and seconds.
  std::optional<std::int64_t> number(Fields& fields, const std::string& key, std::int64_t least);
  void dns_label(Fields& fields, const std::string& key, const std::string& value);
};

// What fieldRef may name.
bool known_field_path(const std::string& path);

}  // namespace glidepod::podhost
