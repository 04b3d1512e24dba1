#pragma once

#include <memory>
#include <utility>

#include "lib/kube/client.hpp"

namespace glidepod::kube {

// A change of a pod whose request also tests what the change begins with. So if the API gets an abandoned
// attempt after a later change, that attempt does nothing. After a 422 the pod is read: somebody else may
// have changed it, or an attempt whose answer was lost.
class TestedChange : public http::Operation {
 protected:
  TestedChange(SteadyTime deadline, PodHandler handler) : deadline_(deadline), handler_(std::move(handler)) {}

  // Reads the pod and goes on from its present state.
  virtual void look() = 0;

  bool refused() const { return refusal_.status != 0; }
  void not_changed(const Error& error) {
    refusal_ = Failure::of(error);
    if (refusal_.status != 422) return fail(refusal_);
    if (!refusal_.rejected()) in_doubt();
    look();
  }
  // Notes that an attempt may have had an effect.
  void in_doubt() { earlier_ = Failure::Effect::unknown; }
  void fail(Failure failure) {
    if (earlier_ == Failure::Effect::unknown) failure.earlier = earlier_;
    finish(failure.to_error());
  }
  void finish(Result<Pod> result) {
    const auto handler = std::move(handler_);
    handler(std::move(result));  // may destroy this
  }

  const SteadyTime deadline_;
  Failure refusal_;  // why the API refused the last attempt
  std::unique_ptr<http::Operation> step_;

 private:
  PodHandler handler_;
  Failure::Effect earlier_ = Failure::Effect::none;
};

}  // namespace glidepod::kube
