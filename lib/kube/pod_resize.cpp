#include "lib/kube/client.hpp"

namespace glidepod::kube {

// An attempt that was given up, and that the API hears of after a later change, finds another version of the
// pod and does nothing.
class Client::Resize : public Operation {
 public:
  Resize(Client& client, PodName pod, std::vector<SizeChange> changes, SteadyTime deadline,
         PodHandler handler)
      : client_(client),
        pod_(std::move(pod)),
        changes_(std::move(changes)),
        deadline_(deadline),
        handler_(std::move(handler)) {
    look();
  }

 private:
  void look() {
    step_ = client_.get(pod_, deadline_, [this](const Result<Pod>& pod) { looked(pod); });
  }

  void looked(const Result<Pod>& pod) {
    if (!pod) {
      if (refusal_.status != 0) earlier_ = Failure::Effect::unknown;
      return fail(Failure::of(pod.error()));
    }
    // It is the very pod that the API has refused to change.
    if (refusal_.status != 0 && tried_ == pod->resource_version) return fail(refusal_);
    if (refusal_.status != 0 && std::chrono::steady_clock::now() >= deadline_) return fail(refusal_);
    const auto body = size_patch(*pod, changes_);
    if (!body) return finish(error("the pod {} lacks a container", pod_.name));
    tried_ = pod->resource_version;
    step_ =
        client_.pod_call({.method = "PATCH",
                          .path = fmt::format("/api/v1/namespaces/{}/pods/{}/resize?fieldManager=glidepod",
                                              pod_.name_space, pod_.name),
                          .body = *body,
                          .content_type = "application/json-patch+json"},
                         deadline_, [this](Result<Pod> changed) { patched(std::move(changed)); });
  }

  void patched(Result<Pod> pod) {
    if (pod) return finish(std::move(pod));
    refusal_ = Failure::of(pod.error());
    if (refusal_.status != 422) return fail(refusal_);
    if (!refusal_.rejected()) earlier_ = Failure::Effect::unknown;
    look();
  }

  void fail(Failure failure) {
    if (earlier_ == Failure::Effect::unknown) failure.earlier = earlier_;
    finish(failure.to_error());
  }

  void finish(Result<Pod> result) {
    const auto handler = std::move(handler_);
    handler(std::move(result));  // may destroy this
  }

  Client& client_;
  const PodName pod_;
  const std::vector<SizeChange> changes_;
  const SteadyTime deadline_;
  PodHandler handler_;
  std::string tried_;  // the version
  Failure refusal_;
  Failure::Effect earlier_ = Failure::Effect::none;
  std::unique_ptr<Operation> step_;
};

std::unique_ptr<Client::Operation> Client::resize(const PodName& pod, std::vector<SizeChange> changes,
                                                  SteadyTime deadline, PodHandler handler) {
  return std::make_unique<Resize>(*this, pod, std::move(changes), deadline, std::move(handler));
}

}  // namespace glidepod::kube
