#include "podhost/keep/reconciler.hpp"

#include <set>

#include "lib/base/log.hpp"
#include "podhost/keep/pod_status.hpp"

namespace glidepod::podhost {

Reconciler::Reconciler(WorkerContext context) : context_(std::move(context)) {
  context_.find = [this](const std::string& uid) -> PodWorker* {
    const auto found = workers_.find(uid);
    return found == workers_.end() ? nullptr : found->second.get();
  };
  context_.gone = [this](const std::string& uid) {
    workers_.erase(uid);
    spdlog::info("event=pod_gone uid={}", uid);
    if (workers_.empty() && all_gone_) all_gone_();
  };
}

void Reconciler::adopt(Found found) {
  std::set<std::string> wanted;
  for (const auto& pod : context_.store.list().pods) {
    const std::string uid = pod->at("metadata").at("uid").get<std::string>();
    FoundPod& running = found.pods[uid];
    if (running.infra) wanted.insert(running.infra->info.pod);
    auto& worker = workers_[uid];
    worker = std::make_unique<PodWorker>(context_, pod);
    worker->adopt(std::move(running));
    worker->sync();
  }
  Podman& podman = context_.tools.podman;
  for (const auto& id : found.podman_pods) {
    if (wanted.contains(id)) continue;
    spdlog::warn("event=stray_pod_removed podman_pod={}", id);
    context_.workers.run([&podman, id] { static_cast<void>(remove_sandbox(podman, id)); });
  }
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
        metadata.at("namespace").get<std::string>(), metadata.at("name").get<std::string>(),
        [](const Json& old_pod) {
          Json fresh = old_pod;
          fresh["metadata"]["deletionTimestamp"] = time_text(std::chrono::system_clock::now());
          fresh["metadata"]["deletionGracePeriodSeconds"] =
              old_pod.at("spec").value("terminationGracePeriodSeconds", 30);
          return Result<Json>(std::move(fresh));
        });
    if (!updated) spdlog::warn("event=pod_not_stopped error={}", glidepod::quoted(updated.error().message()));
  }
}

}  // namespace glidepod::podhost
