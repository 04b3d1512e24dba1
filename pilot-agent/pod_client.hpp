#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/kube/client.hpp"
#include "lib/kube/pod_images.hpp"
#include "pilot-agent/core/core.hpp"
#include "pilot-agent/settings.hpp"

namespace glidepod::agent {

// The agent's own pod, by the API: carries out what the core wants of it, and tells the core what is there.
class PodClient {
 public:
  // changed is called after each call of the core's. Loop and core must outlive it.
  static Result<std::unique_ptr<PodClient>> create(Loop& loop, const Settings& settings, Core& core,
                                                   std::function<void()> changed);
  ~PodClient() { loop_.cancel(again_); }
  PodClient(const PodClient&) = delete;
  PodClient& operator=(const PodClient&) = delete;

  const kube::PodName& name() const { return name_; }
  // Asks until the API has answered; then the handler is called, once.
  void get_first(const std::function<void(const kube::Pod&)>& handler);
  // Has the kubelet end the whole pod, as Failed. done is called once the API has answered, or does not in
  // time.
  void fail(std::function<void()> done);

  // One that is still under way for the same container is given up.
  void run(const Patch& action);
  void run(const Resize& action);
  void run(const Want& action);
  // Watches the pod while the core wants that.
  void adjust_watch();

 private:
  PodClient(Loop& loop, Core& core, std::function<void()> changed)
      : loop_(loop), core_(core), changed_(std::move(changed)) {}
  using Operation = std::unique_ptr<kube::Client::Operation>;

  Loop& loop_;
  Core& core_;
  std::function<void()> changed_;
  kube::PodName name_;
  std::unique_ptr<kube::Client> api_;
  std::unique_ptr<kube::PodImages> images_;
  std::string version_;  // to watch from; empty: from the present state
  Loop::TimerId again_ = 0;
  Operation first_get_, failing_, watch_, resize_;
  Operation want_;                            // the annotation, being written
  std::map<std::string, Operation> patches_;  // by container
};

}  // namespace glidepod::agent
