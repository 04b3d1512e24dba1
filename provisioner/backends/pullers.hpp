#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "lib/kube/calls.hpp"
#include "provisioner/backends/pod_feed.hpp"
#include "provisioner/pullers/puller_pod.hpp"

namespace glidepod::provisioner {

// Has the images pulled that pilots want, as soon as they say so.
class Pullers {
 public:
  // Both must outlive it, as must the feeds that it listens to.
  Pullers(kube::Client& client, PullerPodSettings settings, PullLimits limits);
  ~Pullers();
  Pullers(const Pullers&) = delete;
  Pullers& operator=(const Pullers&) = delete;

  // What the watch of the pilots tells.
  PodFeed::Listener pilots_listener();
  // Lists the pullers where the watch of them has failed, or has not begun.
  void read(Time now);
  // Nothing is begun any more.
  void wind_up();

 private:
  void soon();
  void act();
  void create(const PullPlan::New& wanted);
  void remove(const Puller& puller);
  void annotate(const PullingPilot& pilot, const std::string& text);
  void take(Puller puller);
  void told(const std::string& name, const Json& pod);
  std::map<std::string, std::int64_t> made_lately();

  kube::Calls calls_;
  PullerPodSettings settings_;
  PullLimits limits_;
  PodFeed feed_;  // of the pullers
  std::map<std::string, PullingPilot> pilots_;
  std::map<std::string, Puller> pullers_;
  std::map<std::string, Puller> refused_;  // that could not be made, for as long as they are wanted
  std::set<std::string> busy_;             // pods with a request under way
  std::deque<std::pair<SteadyTime, std::string>> made_;  // nodes for which pullers were made
  bool pilots_known_ = false, pullers_known_ = false;    // they have been listed
  bool soon_ = false, winding_up_ = false;
};

}  // namespace glidepod::provisioner
