#include "lib/kube/tested_change.hpp"

namespace glidepod::kube {

// Each attempt is for one version of the pod.
class Client::Resize final : public TestedChange {
 public:
  Resize(Client& client, PodName pod, std::vector<SizeChange> changes, SteadyTime deadline,
         PodHandler handler)
      : TestedChange(deadline, std::move(handler)),
        client_(client),
        pod_(std::move(pod)),
        changes_(std::move(changes)) {
    look();
  }

 private:
  void look() override {
    step_ = client_.get(pod_, deadline_, [this](const Result<Pod>& pod) { looked(pod); });
  }

  void looked(const Result<Pod>& pod) {
    if (!pod) {
      if (refused()) in_doubt();
      return fail(Failure::of(pod.error()));
    }
    // The pod is still of the version that the API has refused to change.
    if (tried_ == pod->resource_version) return fail(refusal_);
    if (refused() && std::chrono::steady_clock::now() >= deadline_) return fail(refusal_);
    const auto body = size_patch(*pod, changes_);
    if (!body) return finish(error("the pod {} lacks a container", pod_.name));
    tried_ = pod->resource_version;
    step_ =
        client_.pod_call({.method = "PATCH",
                          .path = fmt::format("/api/v1/namespaces/{}/pods/{}/resize?fieldManager=glidepod",
                                              pod_.name_space, pod_.name),
                          .body = *body,
                          .content_type = "application/json-patch+json"},
                         deadline_, [this](Result<Pod> changed) {
                           if (changed) return finish(std::move(changed));
                           not_changed(changed.error());
                         });
  }

  Client& client_;
  const PodName pod_;
  const std::vector<SizeChange> changes_;
  std::optional<std::string> tried_;  // the version of the last attempt
};

std::unique_ptr<Client::Operation> Client::resize(const PodName& pod, std::vector<SizeChange> changes,
                                                  SteadyTime deadline, PodHandler handler) {
  return std::make_unique<Resize>(*this, pod, std::move(changes), deadline, std::move(handler));
}

}  // namespace glidepod::kube
