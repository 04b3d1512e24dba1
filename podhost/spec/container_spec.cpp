#include <fmt/format.h>

#include <algorithm>

#include "lib/base/json.hpp"
#include "lib/kube/quantity.hpp"
#include "podhost/spec/spec_parser.hpp"

namespace glidepod::podhost {
namespace {

using Kind = Fields::Kind;

constexpr std::int64_t k_most_cpu = 1'000'000'000;  // thousandths
constexpr std::string_view k_not_in_a_name("=\0", 2);

}  // namespace

SecurityContext SpecParser::container_security(const Json& json, const std::string& path) {
  SecurityContext security = pod_security;
  Fields fields(json, path, &errors);
  if (const auto user = number(fields, "runAsUser", 0)) security.run_as_user = user;
  if (const auto group = number(fields, "runAsGroup", 0)) security.run_as_group = group;
  if (const auto non_root = fields.boolean("runAsNonRoot")) security.run_as_non_root = *non_root;
  security.allow_escalation = fields.boolean("allowPrivilegeEscalation").value_or(true);
  security.read_only_root = fields.boolean("readOnlyRootFilesystem").value_or(false);
  security.privileged = fields.boolean("privileged").value_or(false);
  if (security.privileged && !rules.allow_privileged) {
    fields.fail("privileged", Kind::forbidden, "disallowed by cluster policy");
  }
  only(fields, "procMount", {"Default"});
  Fields capabilities(fields.object("capabilities"), fields.path_of("capabilities"), &errors);
  security.add = capabilities.texts("add");
  security.drop = capabilities.texts("drop");
  for (const auto* list : {&security.add, &security.drop}) {
    for (const auto& name : *list) {
      const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      });
      if (!plain)
        capabilities.fail(list == &security.add ? "add" : "drop", Kind::invalid, "\"" + name + "\"");
    }
  }
  capabilities.finish();
  seccomp(fields, &security);
  fields.finish();
  return security;
}

Resources SpecParser::resources(const Json& json, const std::string& path) {
  Resources result;
  Fields fields(json, path, &errors);
  for (const std::string group : {"limits", "requests"}) {
    Fields values(fields.object(group), fields.path_of(group), &errors);
    for (const std::string name : {"cpu", "memory", "ephemeral-storage"}) {
      if (!values.has(name)) continue;
      const Json& raw = fields.object(group).at(name);
      const std::string text = raw.is_number() ? json_text(raw) : values.text(name);
      values.skip(name);
      const auto amount = name == "cpu" ? kube::parse_milli(text) : kube::parse_quantity(text);
      if (!amount) {
        values.fail(name, Kind::invalid, amount.error().message());
      } else if (name == "cpu" && amount.value() > k_most_cpu) {
        values.fail(name, Kind::invalid, "\"" + text + "\": more than any machine has");
      } else if (name == "cpu") {
        (group == "limits" ? result.cpu_limit_milli : result.cpu_request_milli) = amount.value();
      } else if (name == "memory") {
        (group == "limits" ? result.memory_limit : result.memory_request) = amount.value();
      } else if (group == "limits") {
        warnings.push_back(values.path_of(name) + ": podhost does not enforce this limit");
      }
    }
    values.finish();
  }
  fields.finish();
  // The API server's own default: a request not given is the limit.
  if (!result.cpu_request_milli) result.cpu_request_milli = result.cpu_limit_milli;
  if (!result.memory_request) result.memory_request = result.memory_limit;
  if (result.cpu_limit_milli && *result.cpu_request_milli > *result.cpu_limit_milli) {
    errors.push_back({Kind::invalid, path + ".requests", "must be less than or equal to cpu limit"});
  }
  if (result.memory_limit && *result.memory_request > *result.memory_limit) {
    errors.push_back({Kind::invalid, path + ".requests", "must be less than or equal to memory limit"});
  }
  return result;
}

EnvVar SpecParser::env_source(const Json& json, const std::string& path) {
  EnvVar var;
  Fields from(json, path, &errors);
  if (from.has("fieldRef")) {
    Fields ref(from.object("fieldRef"), from.path_of("fieldRef"), &errors);
    only(ref, "apiVersion", {"v1"});
    var.source = EnvVar::Source::field;
    var.value = ref.required_text("fieldPath");
    if (!known_field_path(var.value)) ref.fail("fieldPath", Kind::not_supported, "\"" + var.value + "\"");
    ref.finish();
  } else if (from.has("resourceFieldRef")) {
    Fields ref(from.object("resourceFieldRef"), from.path_of("resourceFieldRef"), &errors);
    var.source = EnvVar::Source::resource;
    var.value = ref.required_text("resource");
    var.container = ref.text("containerName");
    only(ref, "resource", {"limits.cpu", "limits.memory", "requests.cpu", "requests.memory"});
    const std::string divisor = ref.text("divisor");
    if (!divisor.empty() && divisor != "0") {
      const auto amount = kube::parse_milli(divisor);
      if (amount) {
        var.divisor_milli = amount.value();
      } else {
        ref.fail("divisor", Kind::invalid, amount.error().message());
      }
    }
    ref.finish();
  }
  from.finish();
  return var;
}

void SpecParser::env(const Json& list, const std::string& path, ContainerSpec* container) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], fmt::format("{}[{}]", path, i), &errors);
    EnvVar var;
    var.name = fields.required_text("name");
    if (var.name.find_first_of(k_not_in_a_name) != std::string::npos) {
      fields.fail("name", Kind::invalid, "must not contain '='");
    }
    var.value = fields.text("value");
    if (fields.has("valueFrom")) {
      EnvVar from = env_source(fields.object("valueFrom"), fields.path_of("valueFrom"));
      from.name = std::move(var.name);
      var = std::move(from);
    }
    fields.finish();
    container->env.push_back(std::move(var));
  }
}

void SpecParser::mounts(const Json& list, const std::string& path, ContainerSpec* container) {
  std::set<std::string> paths;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], fmt::format("{}[{}]", path, i), &errors);
    VolumeMount mount;
    mount.name = fields.required_text("name");
    mount.mount_path = fields.required_text("mountPath");
    mount.sub_path = fields.text("subPath");
    mount.read_only = fields.boolean("readOnly").value_or(false);
    only(fields, "mountPropagation", {"None"});
    if (!paths.insert(mount.mount_path).second) {
      fields.fail("mountPath", Kind::invalid, fmt::format("\"{}\": must be unique", mount.mount_path));
    }
    if (!mount.mount_path.empty() && mount.mount_path.front() != '/') {
      fields.fail("mountPath", Kind::not_served, "podhost needs an absolute path here");
    }
    if (mount.sub_path.starts_with('/')) fields.fail("subPath", Kind::invalid, "must be a relative path");
    const std::string slashed = "/" + mount.sub_path + "/";
    if (slashed.find("/../") != std::string::npos)
      fields.fail("subPath", Kind::invalid, "must not contain '..'");
    const bool known =
        std::ranges::any_of(pod.volumes, [&](const Volume& v) { return v.name == mount.name; });
    if (!mount.name.empty() && !known) {
      fields.fail("name", Kind::invalid, fmt::format("Not found: \"{}\"", mount.name));
    }
    fields.finish();
    container->mounts.push_back(std::move(mount));
  }
}

// Ports are information only, in Kubernetes too, unless they ask for one of the host's.
void SpecParser::ports(const Json& list, const std::string& path) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], fmt::format("{}[{}]", path, i), &errors);
    if (!fields.integer("containerPort")) fields.fail("containerPort", Kind::required);
    fields.text("name");
    only(fields, "protocol", {"TCP", "UDP", "SCTP"});
    fields.finish();
  }
}

ContainerSpec SpecParser::container(const Json& json, const std::string& path, bool init) {
  ContainerSpec result;
  Fields fields(json, path, &errors);
  result.name = fields.required_text("name");
  dns_label(fields, "name", result.name);
  result.image = fields.required_text("image");
  result.working_dir = fields.text("workingDir");
  result.command = fields.texts("command");
  result.args = fields.texts("args");
  env(fields.array("env"), fields.path_of("env"), &result);
  mounts(fields.array("volumeMounts"), fields.path_of("volumeMounts"), &result);
  ports(fields.array("ports"), fields.path_of("ports"));
  result.resources = resources(fields.object("resources"), fields.path_of("resources"));
  result.security = container_security(fields.object("securityContext"), fields.path_of("securityContext"));
  only(fields, "imagePullPolicy", {"Always", "IfNotPresent", "Never"});
  const std::string policy = fields.text("imagePullPolicy", "IfNotPresent");
  result.pull_policy = policy == "Always"  ? PullPolicy::always
                       : policy == "Never" ? PullPolicy::never
                                           : PullPolicy::if_not_present;
  result.termination_message_path = fields.text("terminationMessagePath", result.termination_message_path);
  if (!result.termination_message_path.starts_with('/')) {
    fields.fail("terminationMessagePath", Kind::invalid, "must be an absolute path");
  }
  only(fields, "terminationMessagePolicy", {"File", "FallbackToLogsOnError"});
  result.termination_falls_back_to_logs = fields.text("terminationMessagePolicy") == "FallbackToLogsOnError";
  for (const auto* key : {"stdin", "stdinOnce", "tty"}) {
    if (fields.boolean(key).value_or(false))
      fields.fail(key, Kind::not_served, "podhost does not support this field");
  }
  if (init) {
    only(fields, "restartPolicy", {"Always"});
    result.sidecar = fields.text("restartPolicy") == "Always";
  }
  fields.finish();
  return result;
}

}  // namespace glidepod::podhost
