#include "podhost/pod_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/kube/image_reference.hpp"
#include "lib/kube/quantity.hpp"
#include "podhost/fields.hpp"

namespace glidepod::podhost {
namespace {

using Kind = Fields::Kind;

constexpr std::string_view k_subdomain_rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start "
    "and end with an alphanumeric character";
constexpr std::string_view k_label_rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end "
    "with an alphanumeric character";

constexpr std::int64_t k_greatest = 0x7fffffff;     // of users, groups and seconds
constexpr std::int64_t k_most_cpu = 1'000'000'000;  // thousandths
constexpr std::string_view k_not_in_a_name("=\0", 2);

struct Parser {
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
  ContainerSpec container(const Json& json, const std::string& path);
  SecurityContext container_security(const Json& json, const std::string& path);
  void env(const Json& list, const std::string& path, ContainerSpec* container);
  void mounts(const Json& list, const std::string& path, ContainerSpec* container);
  void ports(const Json& list, const std::string& path);
  Resources resources(const Json& json, const std::string& path);
  void only(Fields& fields, const std::string& key, const std::set<std::string>& accepted);
  std::optional<std::int64_t> number(Fields& fields, const std::string& key, std::int64_t least);
  std::optional<std::int64_t> user_number(Fields& fields, const std::string& key) {
    return number(fields, key, 0);
  }
};

bool known_field_path(const std::string& path) {
  static const std::set<std::string> paths = {"metadata.name", "metadata.namespace",      "metadata.uid",
                                              "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
                                              "status.podIP"};
  return paths.contains(path) ||
         ((path.starts_with("metadata.labels['") || path.starts_with("metadata.annotations['")) &&
          path.ends_with("']"));
}

void Parser::only(Fields& fields, const std::string& key, const std::set<std::string>& accepted) {
  const std::string value = fields.text(key);
  if (value.empty() || accepted.contains(value)) return;
  fields.fail(key, Kind::not_supported,
              fmt::format("\"{}\": supported values: \"{}\"", value, fmt::join(accepted, "\", \"")));
}

std::optional<std::int64_t> Parser::number(Fields& fields, const std::string& key, std::int64_t least) {
  const auto value = fields.integer(key);
  if (value && (*value < least || *value > k_greatest)) {
    fields.fail(key, Kind::invalid,
                fmt::format("{}: must be between {} and {}, inclusive", *value, least, k_greatest));
  }
  return value;
}

void Parser::metadata(const Json& json) {
  Fields fields(json, "metadata", &errors);
  pod.name = fields.required_text("name");
  pod.ns = fields.required_text("namespace");
  pod.uid = fields.text("uid");
  if (!pod.name.empty() && (pod.name.size() > 253 || !valid_dns_subdomain(pod.name))) {
    fields.fail("name", Kind::invalid, fmt::format("\"{}\": {}", pod.name, k_subdomain_rule));
  }
  if (!pod.ns.empty() && !valid_dns_label(pod.ns)) {
    fields.fail("namespace", Kind::invalid, fmt::format("\"{}\": {}", pod.ns, k_label_rule));
  }
  for (const auto* key : {"labels", "annotations"}) {
    for (const auto& [name, value] : fields.object(key).items()) {
      if (!value.is_string())
        fields.fail(fmt::format("{}[{}]", key, name), Kind::invalid, "must be a string");
    }
  }
  if (!fields.array("finalizers").empty()) {
    fields.fail("finalizers", Kind::not_served, "podhost does not support this field");
  }
  for (const auto* key :
       {"creationTimestamp", "resourceVersion", "generation", "managedFields", "generateName", "selfLink",
        "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    fields.skip(key);
  }
  fields.finish();
}

void Parser::seccomp(Fields& fields, SecurityContext* security) {
  if (!fields.has("seccompProfile")) return;
  Fields profile(fields.object("seccompProfile"), fields.path_of("seccompProfile"), &errors);
  only(profile, "type", {"RuntimeDefault", "Unconfined"});
  security->seccomp = profile.text("type") == "Unconfined" ? Seccomp::unconfined : Seccomp::runtime_default;
  profile.finish();
}

void Parser::security(const Json& json, const std::string& path) {
  Fields fields(json, path, &errors);
  pod_security.run_as_user = user_number(fields, "runAsUser");
  pod_security.run_as_group = user_number(fields, "runAsGroup");
  pod_security.run_as_non_root = fields.boolean("runAsNonRoot").value_or(false);
  pod.fs_group = user_number(fields, "fsGroup");
  only(fields, "fsGroupChangePolicy", {"Always", "OnRootMismatch"});
  for (const auto& group : fields.array("supplementalGroups")) {
    if (group.is_number_integer() && group.get<std::int64_t>() >= 0 &&
        group.get<std::int64_t>() <= k_greatest) {
      pod.supplemental_groups.push_back(group.get<std::int64_t>());
    } else {
      fields.fail("supplementalGroups", Kind::invalid, "must be a list of group numbers");
    }
  }
  seccomp(fields, &pod_security);
  fields.finish();
}

SecurityContext Parser::container_security(const Json& json, const std::string& path) {
  SecurityContext security = pod_security;
  Fields fields(json, path, &errors);
  if (const auto user = user_number(fields, "runAsUser")) security.run_as_user = user;
  if (const auto group = user_number(fields, "runAsGroup")) security.run_as_group = group;
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

Resources Parser::resources(const Json& json, const std::string& path) {
  Resources result;
  Fields fields(json, path, &errors);
  for (const std::string group : {"limits", "requests"}) {
    Fields values(fields.object(group), fields.path_of(group), &errors);
    for (const std::string name : {"cpu", "memory", "ephemeral-storage"}) {
      if (!values.has(name)) continue;
      const Json& raw = fields.object(group).at(name);
      const std::string text = raw.is_number() ? raw.dump() : values.text(name);
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

void Parser::env(const Json& list, const std::string& path, ContainerSpec* container) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], fmt::format("{}[{}]", path, i), &errors);
    EnvVar var;
    var.name = fields.required_text("name");
    if (var.name.find_first_of(k_not_in_a_name) != std::string::npos) {
      fields.fail("name", Kind::invalid, "must not contain '='");
    }
    var.value = fields.text("value");
    if (fields.has("valueFrom")) {
      Fields from(fields.object("valueFrom"), fields.path_of("valueFrom"), &errors);
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
    }
    fields.finish();
    container->env.push_back(std::move(var));
  }
}

void Parser::mounts(const Json& list, const std::string& path, ContainerSpec* container) {
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
void Parser::ports(const Json& list, const std::string& path) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields fields(list[i], fmt::format("{}[{}]", path, i), &errors);
    if (!fields.integer("containerPort")) fields.fail("containerPort", Kind::required);
    fields.text("name");
    only(fields, "protocol", {"TCP", "UDP", "SCTP"});
    fields.finish();
  }
}

ContainerSpec Parser::container(const Json& json, const std::string& path) {
  ContainerSpec result;
  Fields fields(json, path, &errors);
  result.name = fields.required_text("name");
  if (!result.name.empty() && !valid_dns_label(result.name)) {
    fields.fail("name", Kind::invalid, fmt::format("\"{}\": {}", result.name, k_label_rule));
  }
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
  fields.finish();
  return result;
}

void Parser::downward_api(const Json& items, const std::string& path, Volume* volume) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    Fields item(items[i], fmt::format("{}[{}]", path, i), &errors);
    ProjectedFile file;
    file.path = item.required_text("path");
    Fields ref(item.object("fieldRef"), item.path_of("fieldRef"), &errors);
    only(ref, "apiVersion", {"v1"});
    file.field_path = ref.required_text("fieldPath");
    // All of them at once: only a file can hold that.
    const bool map = file.field_path == "metadata.labels" || file.field_path == "metadata.annotations";
    if (!map && (!file.field_path.starts_with("metadata.") || !known_field_path(file.field_path))) {
      ref.fail("fieldPath", Kind::not_supported, "\"" + file.field_path + "\"");
    }
    if (file.path.find('/') != std::string::npos || file.path == "." || file.path == ".." ||
        file.path == "api.sock") {
      item.fail("path", Kind::not_served, "podhost supports plain file names other than api.sock here");
    }
    ref.finish();
    item.finish();
    volume->files.push_back(std::move(file));
  }
}

void Parser::projected(const Json& json, const std::string& path, Volume* volume) {
  Fields fields(json, path, &errors);
  fields.integer("defaultMode");
  const Json& sources = fields.array("sources");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Fields source(sources[i], fmt::format("{}.sources[{}]", path, i), &errors);
    if (source.has("serviceAccountToken")) {
      Fields token(source.object("serviceAccountToken"), source.path_of("serviceAccountToken"), &errors);
      token.text("path");
      token.integer("expirationSeconds");
      token.text("audience");
      token.finish();
      volume->api_socket = true;
    }
    if (source.has("configMap")) {
      // The cluster's CA certificate, part of every service-account volume. A Unix socket needs none.
      Fields map(source.object("configMap"), source.path_of("configMap"), &errors);
      only(map, "name", {"kube-root-ca.crt"});
      map.skip("items");
      map.boolean("optional");
      map.finish();
    }
    if (source.has("downwardAPI")) {
      Fields downward(source.object("downwardAPI"), source.path_of("downwardAPI"), &errors);
      downward_api(downward.array("items"), downward.path_of("items"), volume);
      downward.finish();
    }
    source.finish();
  }
  fields.finish();
}

void Parser::volume(const Json& json, const std::string& path) {
  Fields fields(json, path, &errors);
  Volume result;
  result.name = fields.required_text("name");
  if (!result.name.empty() && !valid_dns_label(result.name)) {
    fields.fail("name", Kind::invalid, fmt::format("\"{}\": {}", result.name, k_label_rule));
  }
  for (const auto& other : pod.volumes) {
    if (other.name == result.name) fields.fail("name", Kind::duplicate, "\"" + result.name + "\"");
  }
  if (fields.has("emptyDir")) {
    Fields dir(fields.object("emptyDir"), fields.path_of("emptyDir"), &errors);
    only(dir, "medium", {"Memory"});
    result.in_memory = dir.text("medium") == "Memory";
    if (const std::string limit = dir.text("sizeLimit"); !limit.empty()) {
      const auto bytes = kube::parse_quantity(limit);
      if (bytes) {
        result.size_limit = bytes.value();
        if (!result.in_memory)
          warnings.push_back(dir.path_of("sizeLimit") + ": podhost enforces it only with medium Memory");
      } else {
        dir.fail("sizeLimit", Kind::invalid, bytes.error().message());
      }
    }
    dir.finish();
  } else if (fields.has("hostPath")) {
    result.kind = Volume::Kind::host_path;
    Fields host(fields.object("hostPath"), fields.path_of("hostPath"), &errors);
    result.host_path = host.required_text("path");
    result.host_path_type = host.text("type");
    only(host, "type",
         {"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"});
    if (!result.host_path.starts_with('/') ||
        ("/" + result.host_path + "/").find("/../") != std::string::npos) {
      host.fail("path", Kind::invalid, "must be an absolute path without '..'");
    }
    host.finish();
  } else if (fields.has("projected")) {
    result.kind = Volume::Kind::projected;
    projected(fields.object("projected"), fields.path_of("projected"), &result);
  }
  fields.finish();
  pod.volumes.push_back(std::move(result));
}

void Parser::spec(const Json& json) {
  Fields fields(json, "spec", &errors);
  const Json& volumes = fields.array("volumes");
  for (std::size_t i = 0; i < volumes.size(); ++i) volume(volumes[i], fmt::format("spec.volumes[{}]", i));
  security(fields.object("securityContext"), "spec.securityContext");
  std::set<std::string> names;
  for (const std::string key : {"initContainers", "containers"}) {
    const Json& list = fields.array(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path = fmt::format("spec.{}[{}]", key, i);
      ContainerSpec parsed = container(list[i], path);
      if (!parsed.name.empty() && !names.insert(parsed.name).second) {
        errors.push_back({Kind::duplicate, path + ".name", "\"" + parsed.name + "\""});
      }
      (key == "containers" ? pod.containers : pod.init_containers).push_back(std::move(parsed));
    }
  }
  if (pod.containers.empty()) fields.fail("containers", Kind::required);
  only(fields, "restartPolicy", {"Always", "OnFailure", "Never"});
  const std::string restart = fields.text("restartPolicy", "Always");
  pod.restart_policy = restart == "Never"       ? RestartPolicy::never
                       : restart == "OnFailure" ? RestartPolicy::on_failure
                                                : RestartPolicy::always;
  pod.grace_seconds = number(fields, "terminationGracePeriodSeconds", 0).value_or(30);
  pod.deadline_seconds = number(fields, "activeDeadlineSeconds", 1);
  pod.share_processes = fields.boolean("shareProcessNamespace").value_or(false);
  pod.host_network = fields.boolean("hostNetwork").value_or(false);
  pod.hostname = fields.text("hostname");
  if (!pod.hostname.empty() && !valid_dns_label(pod.hostname)) {
    fields.fail("hostname", Kind::invalid, fmt::format("\"{}\": {}", pod.hostname, k_label_rule));
  }
  if (pod.hostname.empty()) {
    pod.hostname = pod.name.substr(0, 63);
    while (pod.hostname.ends_with('-') || pod.hostname.ends_with('.')) pod.hostname.pop_back();
  }
  for (const auto* key : {"hostPID", "hostIPC"}) {
    if (fields.boolean(key).value_or(false))
      fields.fail(key, Kind::not_served, "podhost does not support this field");
  }
  if (fields.boolean("automountServiceAccountToken").value_or(false)) {
    fields.fail("automountServiceAccountToken", Kind::not_served,
                "podhost gives a service account only through a projected volume");
  }
  fields.boolean("enableServiceLinks");
  pod.service_account = fields.text("serviceAccountName", "default");
  fields.text("serviceAccount");
  only(fields, "dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default"});
  only(fields, "schedulerName", {"default-scheduler"});
  only(fields, "nodeName", {rules.node_name});
  fields.array("tolerations");  // this node has no taints
  fields.finish();
}

}  // namespace

const ContainerSpec* PodSpec::find(const std::string& container) const {
  for (const auto* list : {&containers, &init_containers}) {
    for (const auto& spec : *list) {
      if (spec.name == container) return &spec;
    }
  }
  return nullptr;
}

bool PodSpec::wants_api_socket() const {
  return std::ranges::any_of(volumes, [](const Volume& volume) { return volume.api_socket; });
}

kube::Outcome<ParsedPod> parse_pod(const Json& pod, const SpecRules& rules) {
  Parser parser{rules, {}, {}, {}, {}};
  static const Json k_none = Json::object();
  const auto part = [&](const char* key) -> const Json& { return pod.contains(key) ? pod.at(key) : k_none; };
  parser.metadata(part("metadata"));
  parser.spec(part("spec"));
  Fields top(pod, "", &parser.errors);
  for (const auto* key : {"apiVersion", "kind", "metadata", "spec", "status"}) top.skip(key);
  top.finish();
  if (!parser.errors.empty()) return kube::ApiError::invalid_pod(parser.pod.name, parser.errors);
  return ParsedPod{std::move(parser.pod), std::move(parser.warnings)};
}

}  // namespace glidepod::podhost
