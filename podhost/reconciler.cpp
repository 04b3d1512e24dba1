#include "podhost/reconciler.hpp"

#include <set>

#include "lib/base/log.hpp"
#include "podhost/pod_status.hpp"

namespace glidepod::podhost {

Reconciler::Reconciler(WorkerContext context) : context_(std::move(context)) {
  context_.find = [this](const std::string& uid) -> PodWorker* {
    const auto found = workers_.find(uid);
    return found == workers_.end() ? nullptr : found->second.get();
  };
  context_.gone = [this](const std::string& uid) {
    workers_.erase(uid);
    spdlog::info("pod gone uid={}", uid);
    if (workers_.empty() && all_gone_) all_gone_();
  };
}

Result<void> Reconciler::adopt() {
  Podman& podman = context_.tools.podman;
  const std::string mine = fmt::format("{}={}", label::k_state_dir, context_.tools.state_dir);
  struct Found {
    std::optional<ContainerInfo> infra;
    std::vector<ContainerInfo> containers;
  };
  std::map<std::string, Found> found;
  for (const auto& id : TRY(podman.list_containers(mine))) {
    auto info = podman.inspect_container(id);
    if (!info) continue;  // removed in between
    const auto& labels = info.value().labels;
    const auto uid = labels.find(label::k_uid);
    if (uid == labels.end()) continue;
    Found& pod = found[uid->second];
    if (labels.contains(label::k_container)) {
      pod.containers.push_back(std::move(info).value());
    } else {
      pod.infra = std::move(info).value();
    }
  }
  std::set<std::string> known;
  for (const auto& pod : context_.store.list().pods) {
    const std::string uid = pod->at("metadata").at("uid").get<std::string>();
    known.insert("podhost-" + uid);
    auto worker = std::make_unique<PodWorker>(context_, pod);
    PodWorker& added = *worker;
    workers_[uid] = std::move(worker);
    Found& running = found[uid];
    added.adopt(running.infra ? &*running.infra : nullptr, std::move(running.containers));
    added.sync();
  }
  for (const auto& id : TRY(podman.list_pods(mine))) {
    const bool ours = std::ranges::any_of(workers_, [&](const auto& entry) {
      const auto& infra = found[entry.first].infra;
      return infra.has_value() && infra->pod == id;
    });
    if (ours) continue;
    spdlog::warn("pod of no object removed podman_pod={}", id);
    context_.workers.run([&podman, id] { static_cast<void>(podman.remove_pod(id)); });
  }
  return {};
}

void Reconciler::changed(const std::string& uid) {
  context_.inbox.post([this, uid] { look(uid); });
}

void Reconciler::look(const std::string& uid) {
  PodPtr pod = context_.store.find(uid);
  if (!pod) return;
  auto& worker = workers_[uid];
  if (!worker) {
    worker = std::make_unique<PodWorker>(context_, std::move(pod));
  } else {
    worker->object_changed(std::move(pod));
  }
  worker->sync();
}

void Reconciler::cancel() {
  for (auto& [uid, worker] : workers_) worker->cancel();
}

void Reconciler::stop_all(std::function<void()> done) {
  if (workers_.empty()) return done();
  all_gone_ = std::move(done);
  for (const auto& pod : context_.store.list().pods) {
    const Json& metadata = pod->at("metadata");
    const auto updated = context_.store.update(
        metadata.at("namespace").get<std::string>(), metadata.at("name").get<std::string>(), [](const Json& old_pod) {
          Json fresh = old_pod;
          fresh["metadata"]["deletionTimestamp"] = time_text(std::chrono::system_clock::now());
          fresh["metadata"]["deletionGracePeriodSeconds"] =
              old_pod.at("spec").value("terminationGracePeriodSeconds", 30);
          return kube::Outcome<Json>(std::move(fresh));
        });
    if (!updated) spdlog::warn("pod not stopped error={}", glidepod::quoted(updated.error().message));
  }
}

}  // namespace glidepod::podhost
