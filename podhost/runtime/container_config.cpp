#include "podhost/runtime/container_config.hpp"

#include <algorithm>

#include "lib/kube/image_reference.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t k_cpu_period = 100000;  // microseconds
constexpr std::int64_t k_log_bytes = 10 << 20;

Json capabilities(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (std::string name : names) {
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    list.push_back(name == "ALL" || name.starts_with("CAP_") ? name : "CAP_" + name);
  }
  return list;
}

// podman's USER[:GROUP]; the image's own user where the pod names none.
std::string user_of(const SecurityContext& security, const std::string& image_user) {
  std::string user = image_user.substr(0, image_user.find(':'));
  if (security.run_as_user) user = std::to_string(*security.run_as_user);
  if (security.run_as_group)
    return (user.empty() ? "0" : user) + ":" + std::to_string(*security.run_as_group);
  return security.run_as_user ? user : image_user;
}

}  // namespace

Json resource_limits(const Resources& resources, std::int64_t pids_limit) {
  Json result = Json::object();
  if (resources.cpu_limit_milli) {
    // The kernel refuses a quota below one millisecond.
    result["cpu"]["quota"] = std::max<std::int64_t>(*resources.cpu_limit_milli * k_cpu_period / 1000, 1000);
    result["cpu"]["period"] = k_cpu_period;
  }
  if (resources.cpu_request_milli) {
    result["cpu"]["shares"] = std::max<std::int64_t>(*resources.cpu_request_milli * 1024 / 1000, 2);
  }
  if (resources.memory_limit) result["memory"]["limit"] = *resources.memory_limit;
  if (pids_limit > 0) result["pids"]["limit"] = pids_limit;
  return result;
}

std::string podman_pod_name(const PodSpec& pod) {
  return "podhost-" + pod.uid;
}

Json pod_config(const PodSpec& pod, const std::string& state_dir) {
  Json shared = {"ipc", "uts", "net"};
  if (pod.share_processes) shared.push_back("pid");
  Json config = {{"name", podman_pod_name(pod)},
                 {"hostname", pod.hostname},
                 {"shared_namespaces", shared},
                 {"labels", {{label::k_state_dir, state_dir}, {label::k_uid, pod.uid}}}};
  if (pod.host_network) config["netns"] = {{"nsmode", "host"}};
  return config;
}

Json container_config(const PodSpec& pod, const ContainerSpec& container, const ImageInfo& image,
                      const PodFacts& facts, const ContainerPlan& plan) {
  const auto variables = make_environment(pod, container, facts);
  const auto expanded = [&](const std::vector<std::string>& words) {
    Json list = Json::array();
    for (const auto& word : words) list.push_back(expand(word, variables));
    return list;
  };
  Json config = {
      {"name", plan.podman_name},
      {"pod", plan.pod_name},
      {"image", image.id},
      {"raw_image_name", container.image},
      {"env", variables},
      {"labels",
       {{label::k_state_dir, plan.state_dir},
        {label::k_uid, pod.uid},
        {label::k_container, container.name},
        {label::k_attempt, std::to_string(plan.attempt)},
        {label::k_image, container.image},
        {label::k_image_id, plan.image_id}}},
      {"restart_policy", "no"},
      {"systemd", "false"},
      {"image_volume_mode", "anonymous"},
      // Skips the fsyncs of the root file system; nothing in it outlives the container.
      {"volatile", true},
      {"stop_timeout", pod.grace_seconds},
      {"log_configuration", {{"driver", "k8s-file"}, {"path", plan.log_file}, {"size", k_log_bytes}}},
      {"resource_limits", resource_limits(container.resources, plan.pids_limit)},
  };
  // Without a command the image's entrypoint stays, and its arguments too unless there are args.
  if (!container.command.empty()) config["entrypoint"] = expanded(container.command);
  if (!container.args.empty()) config["command"] = expanded(container.args);
  if (!container.working_dir.empty()) {
    config["work_dir"] = container.working_dir;
    config["create_working_dir"] = true;
  }
  Json mounts = Json::array();
  for (const auto& mount : plan.mounts) {
    mounts.push_back({{"type", "bind"},
                      {"source", mount.source},
                      {"destination", mount.target},
                      {"options", {"rbind", "rprivate", mount.read_only ? "ro" : "rw"}}});
  }
  mounts.push_back({{"type", "bind"},
                    {"source", plan.message_file},
                    {"destination", container.termination_message_path},
                    {"options", {"bind", "rprivate", "rw"}}});
  const bool own_hosts = std::ranges::any_of(
      plan.mounts, [](const ResolvedMount& mount) { return mount.target == "/etc/hosts"; });
  if (!plan.hosts_file.empty() && !own_hosts) {
    mounts.push_back({{"type", "bind"},
                      {"source", plan.hosts_file},
                      {"destination", "/etc/hosts"},
                      {"options", {"bind", "rprivate", "rw"}}});
  }
  config["mounts"] = std::move(mounts);

  const SecurityContext& security = container.security;
  if (const std::string user = user_of(security, image.user); !user.empty()) config["user"] = user;
  Json groups = Json::array();
  for (const auto group : pod.supplemental_groups) groups.push_back(std::to_string(group));
  if (pod.fs_group) groups.push_back(std::to_string(*pod.fs_group));
  if (!groups.empty()) config["groups"] = std::move(groups);
  if (!security.add.empty()) config["cap_add"] = capabilities(security.add);
  if (!security.drop.empty()) config["cap_drop"] = capabilities(security.drop);
  if (!security.allow_escalation) config["no_new_privileges"] = true;
  if (security.read_only_root) config["read_only_filesystem"] = true;
  if (security.privileged) config["privileged"] = true;
  if (security.seccomp == Seccomp::unconfined) config["seccomp_profile_path"] = "unconfined";
  return config;
}

std::string hosts_text(const PodSpec& pod, const std::string& ip) {
  std::string text =
      "# Managed by podhost.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
  if (!ip.empty()) text += ip + "\t" + pod.hostname + "\n";
  return text;
}

std::string image_id_text(const std::string& reference, const ImageInfo& image) {
  const auto parsed = kube::ImageReference::parse(reference);
  if (parsed) {
    for (const auto& repository : {parsed.value().repository, parsed.value().full_repository()}) {
      for (const auto& digest : image.digests) {
        if (!digest.starts_with(repository + "@")) continue;
        // An image known by several digests (a list's and its own): the one asked for is the one to show.
        if (parsed.value().digest.empty() || digest.ends_with("@" + parsed.value().digest)) return digest;
      }
    }
  }
  return image.digests.empty() ? "sha256:" + image.id : image.digests.front();
}

}  // namespace glidepod::podhost
