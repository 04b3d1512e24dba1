#include "podhost/spec/pod_spec.hpp"

#include <fmt/format.h>

#include "lib/kube/quantity.hpp"
#include "podhost/spec/spec_parser.hpp"

namespace glidepod::podhost {
namespace {

using Kind = Fields::Kind;

constexpr std::string_view k_subdomain_rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character";
constexpr std::string_view k_label_rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character";
constexpr std::int64_t k_greatest = 0x7fffffff;

}  // namespace

bool known_field_path(const std::string& path) {
  static const std::set<std::string> paths = {"metadata.name", "metadata.namespace",      "metadata.uid",
                                              "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
                                              "status.podIP"};
  return paths.contains(path) ||
         ((path.starts_with("metadata.labels['") || path.starts_with("metadata.annotations['")) &&
          path.ends_with("']"));
}

void SpecParser::only(Fields& fields, const std::string& key, const std::set<std::string>& accepted) {
  const std::string value = fields.text(key);
  if (value.empty() || accepted.contains(value)) return;
  fields.fail(key, Kind::not_supported,
              fmt::format("\"{}\": supported values: \"{}\"", value, fmt::join(accepted, "\", \"")));
}

std::optional<std::int64_t> SpecParser::number(Fields& fields, const std::string& key, std::int64_t least) {
  const auto value = fields.integer(key);
  if (value && (*value < least || *value > k_greatest)) {
    fields.fail(key, Kind::invalid,
                fmt::format("{}: must be between {} and {}, inclusive", *value, least, k_greatest));
  }
  return value;
}

void SpecParser::dns_label(Fields& fields, const std::string& key, const std::string& value) {
  if (value.empty() || valid_dns_label(value)) return;
  fields.fail(key, Kind::invalid, fmt::format("\"{}\": {}", value, k_label_rule));
}

void SpecParser::metadata(const Json& json) {
  Fields fields(json, "metadata", &errors);
  pod.name = fields.required_text("name");
  pod.name_space = fields.required_text("namespace");
  pod.uid = fields.text("uid");
  if (!pod.name.empty() && (pod.name.size() > 253 || !valid_dns_subdomain(pod.name))) {
    fields.fail("name", Kind::invalid, fmt::format("\"{}\": {}", pod.name, k_subdomain_rule));
  }
  dns_label(fields, "namespace", pod.name_space);
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

void SpecParser::seccomp(Fields& fields, SecurityContext* security) {
  if (!fields.has("seccompProfile")) return;
  Fields profile(fields.object("seccompProfile"), fields.path_of("seccompProfile"), &errors);
  only(profile, "type", {"RuntimeDefault", "Unconfined"});
  security->seccomp = profile.text("type") == "Unconfined" ? Seccomp::unconfined : Seccomp::runtime_default;
  profile.finish();
}

void SpecParser::security(const Json& json, const std::string& path) {
  Fields fields(json, path, &errors);
  pod_security.run_as_user = number(fields, "runAsUser", 0);
  pod_security.run_as_group = number(fields, "runAsGroup", 0);
  pod_security.run_as_non_root = fields.boolean("runAsNonRoot").value_or(false);
  pod.fs_group = number(fields, "fsGroup", 0);
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

void SpecParser::downward_api(const Json& items, const std::string& path, Volume* volume) {
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

void SpecParser::projected(const Json& json, const std::string& path, Volume* volume) {
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

void SpecParser::volume(const Json& json, const std::string& path) {
  Fields fields(json, path, &errors);
  Volume result;
  result.name = fields.required_text("name");
  dns_label(fields, "name", result.name);
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

void SpecParser::spec(const Json& json) {
  Fields fields(json, "spec", &errors);
  const Json& volumes = fields.array("volumes");
  for (std::size_t i = 0; i < volumes.size(); ++i) volume(volumes[i], fmt::format("spec.volumes[{}]", i));
  security(fields.object("securityContext"), "spec.securityContext");
  std::set<std::string> names;
  for (const std::string key : {"initContainers", "containers"}) {
    const Json& list = fields.array(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path = fmt::format("spec.{}[{}]", key, i);
      ContainerSpec parsed = container(list[i], path, key == "initContainers");
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
  dns_label(fields, "hostname", pod.hostname);
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

const ContainerSpec* PodSpec::find(const std::string& container) const {
  for (const auto* list : {&containers, &init_containers}) {
    for (const auto& spec : *list) {
      if (spec.name == container) return &spec;
    }
  }
  return nullptr;
}

Result<ParsedPod> parse_pod(const Json& pod, const SpecRules& rules) {
  SpecParser parser{rules, {}, {}, {}, {}};
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
