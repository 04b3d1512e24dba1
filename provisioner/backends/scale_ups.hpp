#pragma once

#include <functional>
#include <map>
#include <string>

#include "lib/kube/list.hpp"
#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// For which pods of a namespace a node is being made, as the Events of its autoscaler say: TriggeredScaleUp
// of the Cluster Autoscaler, Nominated of Karpenter.
class ScaleUps {
 public:
  // Must outlive it.
  ScaleUps(kube::Calls& calls, std::string name_space) : calls_(calls), name_space_(std::move(name_space)) {}

  // Asks for them every four minutes, and calls done from the loop. Without the right to list Events it is
  // told once, and there are none.
  void read(Time now, std::function<void()> done);
  // The autoscaler's words about the pod with this uid, for as long as it may need for a node; else nothing.
  std::string words_for(const std::string& uid, Time now) const;

 private:
  struct Event {
    Time at;
    std::string words;
  };
  void read_reason(std::size_t number, Time now, std::function<void()> done);
  void take(const nlohmann::json& event, Time now);

  kube::Calls& calls_;
  std::string name_space_;
  std::map<std::string, Event> events_;  // by the pod's uid
  Time read_at_{};
  bool forbidden_ = false;
};

}  // namespace glidepod::provisioner
