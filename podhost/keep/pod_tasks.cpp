#include "podhost/keep/pod_tasks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/kube/image_reference.hpp"
#include "podhost/keep/pod_status.hpp"
#include "podhost/runtime/memory.hpp"
#include "podhost/runtime/volumes.hpp"
#include "podhost/store/log_file.hpp"

namespace glidepod::podhost {
namespace {

using Retry = NotPrepared::Retry;

constexpr std::size_t k_message_limit = 4096;
constexpr std::size_t k_fallback_limit = 2048;
constexpr int k_fallback_lines = 80;
constexpr int k_looks = 3;             // of a container that podman fails to tell of
constexpr int k_conmon_limit = 15000;  // milliseconds; it runs podman's own clean-up before it ends

Error failure(std::string reason, std::string message, Retry retry = Retry::backoff) {
  return Error(std::move(message))
      .with(NotPrepared{.reason = std::move(reason), .retry = retry, .image_id = {}});
}

// Podman being away is nobody's fault: the container stays in creation and is tried again soon.
Error failure(std::string reason, const Error& error) {
  if (!podman_away(error)) return failure(std::move(reason), error.message());
  return failure("ContainerCreating", error.message(), Retry::soon);
}

// Podman finds an image by its digest whatever repository it came from, also for one who may not pull it from
// there.
bool is_from(const ImageInfo& image, const kube::ImageReference& reference) {
  return reference.digest.empty() ||
         std::ranges::find(image.digests, reference.full_name()) != image.digests.end();
}

Result<ImageInfo> get_image(const TaskTools& tools, const ContainerSpec& container,
                            const std::atomic<bool>& cancelled) {
  const auto reference = kube::ImageReference::parse(container.image);
  if (!reference) {
    return failure("InvalidImageName",
                   fmt::format("Failed to apply default image tag \"{0}\": couldn't parse image reference "
                               "\"{0}\": {1}",
                               container.image, reference.error().message()),
                   Retry::never);
  }
  if (container.pull_policy != PullPolicy::always) {
    auto local = tools.podman.find_image(reference.value().local_name());
    if (!local) return failure("ImageInspectError", local.error());
    if (local.value() && is_from(*local.value(), reference.value())) return *std::move(local).value();
    if (container.pull_policy == PullPolicy::never) {
      return failure(
          "ErrImageNeverPull",
          fmt::format("Container image \"{}\" is not present with pull policy of Never", container.image));
    }
  }
  const std::string full = reference.value().full_name();
  spdlog::info("event=pull image={}", full);
  if (const auto pulled = tools.podman.pull(full, cancelled); !pulled) {
    spdlog::warn("event=pull_failed image={} error={}", full, glidepod::quoted(pulled.error().message()));
    return failure("ErrImagePull", pulled.error());
  }
  auto image = tools.podman.find_image(full);
  if (!image) return failure("ImageInspectError", image.error());
  if (!image.value()) return failure("ImageInspectError", "the image vanished after its pull");
  return *std::move(image).value();
}

Result<void> check_non_root(const ContainerSpec& container, const ImageInfo& image) {
  const SecurityContext& security = container.security;
  if (!security.run_as_non_root) return {};
  if (security.run_as_user) {
    if (*security.run_as_user != 0) return {};
    return error("container's runAsUser breaks non-root policy");
  }
  const std::string user = image.user.substr(0, image.user.find(':'));
  if (user.empty() || user == "0" || user == "root")
    return error("container has runAsNonRoot and image will run as root");
  if (user.find_first_not_of("0123456789") == std::string::npos) return {};
  return error(
      "container has runAsNonRoot and image has non-numeric user ({}), cannot verify user is non-root", user);
}

// Repeats a call until podman has answered it, or podhost ends.
template <typename Call>
auto insist(Call call) {
  auto result = call();
  while (!result && podman_away(result.error()) && result.error().code() != ECANCELED) result = call();
  return result;
}

void remove_empty_folders(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored)) remove_empty_folders(entry.path());
  }
  rmdir(folder.c_str());
}

// With cgroups of version 1 podman leaves a pod's own behind, in the hierarchies without a controller. Only
// empty ones can be removed, so nothing that lives is at risk.
void remove_cgroup(const std::string& id, const std::string& cgroup) {
  if (id.empty() || !cgroup.ends_with("/" + id)) return;
  std::error_code ignored;
  for (const auto& hierarchy : std::filesystem::directory_iterator("/sys/fs/cgroup", ignored)) {
    const auto folder = hierarchy.path().string() + cgroup;
    if (access(folder.c_str(), F_OK) == 0) remove_empty_folders(folder);
  }
}

Result<void> make_message_file(const std::string& path) {
  const Fd file = TRY(open_file(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666));
  // Any user of the container may write its last words.
  if (fchmod(file.get(), 0666) != 0) return Error::system("chmod {}", path);
  return {};
}

// A pidfd of the container's main process, if it has one.
Result<Fd> open_process(Podman& podman, const ContainerInfo& info) {
  if (info.pid <= 0) return Error("the container has no process", ESRCH);
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, info.pid, 0)));
  if (!fd) return Error::system("pidfd_open {}", info.pid);
  // The number may have been given to another process before it was opened.
  const auto again = TRY(podman.inspect_container(info.id));
  if (again.pid != info.pid) return Error("the container has ended", ESRCH);
  return fd;
}

// One of its conmon; none if that has ended.
Fd open_conmon(const ContainerInfo& info) {
  if (info.conmon_pid <= 0) return Fd();
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, info.conmon_pid, 0)));
}

}  // namespace

Result<MadeSandbox> create_sandbox(const TaskTools& tools, const PodSpec& pod, const PodFacts& facts) {
  TRY(prepare_volumes(tools.files, pod, facts));
  TRY(remove_sandbox(tools.podman, podman_pod_name(pod)));
  const std::string infra = TRY(tools.podman.run_pod(pod_config(pod, tools.state_dir)));
  const ContainerInfo info = TRY(tools.podman.inspect_container(infra));
  MadeSandbox made;
  made.pidfd = TRY(open_process(tools.podman, info));
  made.ip = pod.host_network ? facts.host_ip : info.ip;
  // Podman's own file of a pod loses lines when several of its containers begin and end at once.
  if (!pod.host_network) TRY(replace_file(tools.files.hosts_file(pod.uid), hosts_text(pod, made.ip), 0644));
  return made;
}

Result<Prepared> prepare_container(const TaskTools& tools, const PodSpec& pod, const ContainerSpec& container,
                                   const PodFacts& facts, int attempt, const std::string& podman_name,
                                   const std::atomic<bool>& cancelled) {
  const ImageInfo image = TRY(get_image(tools, container, cancelled));
  if (cancelled) return failure("ContainerCreating", "cancelled");
  if (const auto allowed = check_non_root(container, image); !allowed)
    return failure("CreateContainerConfigError", allowed.error().message());
  ContainerPlan plan;
  plan.podman_name = podman_name;
  plan.pod_name = podman_pod_name(pod);
  plan.state_dir = tools.state_dir;
  plan.attempt = attempt;
  plan.image_id = image_id_text(container.image, image);
  plan.message_file = tools.files.message_file(pod.uid, container.name, attempt);
  plan.log_file = tools.files.log_file(pod.uid, container.name, attempt);
  plan.pids_limit = tools.pids_limit;
  // None for the host's network, and for a pod that an earlier podhost made.
  if (const std::string hosts = tools.files.hosts_file(pod.uid); access(hosts.c_str(), F_OK) == 0)
    plan.hosts_file = hosts;
  auto mounts = resolve_mounts(tools.files, pod, container);
  if (!mounts) return failure("CreateContainerConfigError", mounts.error().message());
  plan.mounts = std::move(mounts).value();
  if (const auto made = make_message_file(plan.message_file); !made) {
    return failure("CreateContainerError", made.error().message());
  }
  const auto id = tools.podman.create_container(container_config(pod, container, image, facts, plan));
  if (!id) return failure("CreateContainerError", id.error());
  Prepared result;
  result.id = id.value();
  result.image_id = plan.image_id;
  const auto ready = [&]() -> Result<void> {
    TRY(tools.podman.init_container(id.value()));
    const ContainerInfo info = TRY(tools.podman.inspect_container(id.value()));
    result.stop_signal = info.stop_signal;
    result.conmon = open_conmon(info);
    result.pidfd = TRY(open_process(tools.podman, info));
    return {};
  };
  if (const auto done = ready(); !done) {
    static_cast<void>(remove_container(tools.podman, id.value()));
    const Error problem = failure("RunContainerError", done.error());
    NotPrepared why = *problem.fact<NotPrepared>();
    why.start_error = why.reason == "RunContainerError";
    why.image_id = plan.image_id;
    return problem.with(std::move(why));
  }
  return result;
}

bool has_begun(const ContainerInfo& container) {
  return container.state != "created" && container.state != "initialized" && container.state != "configured";
}

Result<void> start_container(Podman& podman, const std::string& id, bool asked_before) {
  if (asked_before && has_begun(TRY(podman.inspect_container(id)))) return {};
  return podman.start_container(id);
}

Result<void> resize_container(const TaskTools& tools, const std::string& id, const Resources& resources) {
  if (resources.memory_limit) {
    const ContainerInfo info = TRY(tools.podman.inspect_container(id));
    const std::int64_t used = info.pid > 0 ? memory_in_use(info.pid) : 0;
    if (used > *resources.memory_limit)
      return error("{} bytes of memory are in use, more than {}", used, *resources.memory_limit);
  }
  Json limits = resource_limits(resources, tools.pids_limit);
  // As podman does when it makes a container.
  if (resources.memory_limit && swap_is_limited()) limits["memory"]["swap"] = 2 * *resources.memory_limit;
  return tools.podman.update_container(id, limits);
}

EndResult learn_end(const TaskTools& tools, const PodSpec& pod, const ContainerSpec& container,
                    const std::string& id, int attempt, const Fd& conmon) {
  EndResult result;
  if (conmon) {
    pollfd wait{conmon.get(), POLLIN, 0};
    if (poll(&wait, 1, k_conmon_limit) == 0) spdlog::warn("event=conmon_lingers id={}", id);
  }
  const auto info = insist([&] { return tools.podman.inspect_container(id); });
  // Without its conmon nobody saw how it ended, and podman then has no exit code of it.
  if (info && (info.value().state == "exited" || info.value().state == "stopped") &&
      info.value().exit_code >= 0) {
    result.exit_code = info.value().exit_code;
    result.reason = info.value().oom_killed ? "OOMKilled" : result.exit_code == 0 ? "Completed" : "Error";
    result.started = parse_time(info.value().started);
    result.finished = parse_time(info.value().finished);
  } else {
    result.exit_code = k_exit_unknown;
    result.reason = k_status_unknown;
    result.message = k_status_unknown_message;
  }
  if (auto words = read_head(tools.files.message_file(pod.uid, container.name, attempt), k_message_limit);
      !words.empty()) {
    result.message = std::move(words);
  } else if (container.termination_falls_back_to_logs && result.exit_code != 0) {
    result.message =
        read_tail(tools.files.log_file(pod.uid, container.name, attempt), k_fallback_lines, k_fallback_limit);
  }
  return result;
}

void bury_container(const TaskTools& tools, const std::string& uid, const std::string& container,
                    const std::string& id, int attempt) {
  if (const auto removed = remove_container(tools.podman, id); !removed) {
    spdlog::warn("event=container_not_removed id={} error={}", id,
                 glidepod::quoted(removed.error().message()));
  }
  unlink(tools.files.message_file(uid, container, attempt).c_str());
  // The log of this run and of the one before stay, as the kubelet keeps them.
  unlink(tools.files.log_file(uid, container, attempt - 2).c_str());
}

namespace {

// A pod without a container that it had is made anew, and what runs of it is removed: so one that podman
// fails to tell of is given up late. Nothing: it is not there.
Result<std::optional<ContainerInfo>> look_at(Podman& podman, const std::string& id) {
  for (int left = k_looks; left > 0; --left) {
    auto info = podman.inspect_container(id);
    if (info) return std::optional(*std::move(info));
    if (podman_away(info.error())) return info.error();
    if (info.error().fact<PodmanLacks>()) return std::optional<ContainerInfo>();
    spdlog::warn("event=container_not_known id={} error={}", id, glidepod::quoted(info.error().message()));
  }
  return std::optional<ContainerInfo>();
}

bool has_ended(const Error& why) {
  return why.code() == ESRCH || why.fact<PodmanLacks>();
}

}  // namespace

Result<Found> find_pods(Podman& podman, const std::string& state_dir) {
  const std::string mine = fmt::format("{}={}", label::k_state_dir, state_dir);
  Found found;
  for (const auto& id : TRY(podman.list_containers(mine))) {
    auto info = TRY(look_at(podman, id));
    if (!info) continue;
    FoundContainer container{*std::move(info), {}, {}};
    const auto& labels = container.info.labels;
    const auto uid = labels.find(label::k_uid);
    if (uid == labels.end()) continue;
    auto process = open_process(podman, container.info);
    if (!process && !has_ended(process.error())) return process.error();
    if (process) container.process = std::move(process).value();
    container.conmon = open_conmon(container.info);
    FoundPod& pod = found.pods[uid->second];
    if (labels.contains(label::k_container)) {
      pod.containers.push_back(std::move(container));
    } else {
      pod.infra = std::move(container);
    }
  }
  found.podman_pods = TRY(podman.list_pods(mine));
  return found;
}

Result<void> remove_container(Podman& podman, const std::string& id) {
  return insist([&] { return podman.remove_container(id); });
}

Result<bool> has_pod(Podman& podman, const std::string& name) {
  const auto found = TRY(insist([&] { return podman.find_pod(name); }));
  return found.has_value();
}

Result<void> remove_sandbox(Podman& podman, const std::string& name) {
  const auto found = TRY(podman.find_pod(name));
  TRY(podman.remove_pod(name));
  if (found) remove_cgroup(found->id, found->cgroup);
  return {};
}

}  // namespace glidepod::podhost
