#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "provisioner/backends/backend.hpp"
#include "provisioner/backends/pod_feed.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/backends/pullers.hpp"
#include "provisioner/backends/scale_ups.hpp"
#include "provisioner/demand/contract.hpp"

namespace glidepod::provisioner {

// Pilots as pods of one namespace.
class Kubernetes : public Backend {
 public:
  // The client must outlive it.
  Kubernetes(kube::Client& client, KubernetesSettings settings, PodMaker maker, PodFeed::Mode mode);

  // The pods by their labels, the quotas, and now and then the nodes. Nodes and quotas that may not be read
  // limit nothing.
  void look(Time now, std::function<void(Seen)> done) override;
  Demand fit(Demand demand, Capacity& capacity) const override;
  void avoid(const std::vector<std::string>& nodes) override { avoid_ = nodes; }
  // Pilots with spare containers are told, by an annotation of their pods, which takes the right to patch
  // them.
  void want(const std::map<Group, GroupDemand>& groups) override;
  // Repeats what may be repeated for a minute; a pod of its group that is there already is one that was made.
  void create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) override;
  // Only the very pod that was seen, and as it was seen: it may be at work by now.
  void remove(const std::string& name, std::function<void(Result<void>)> done) override;
  // By the annotation k_drained of the pod, which its kubelet writes into a file of its pilot's.
  void drain(const Draining& draining, std::function<void(Result<void>)> done) override;
  // A core/v1 Event. Where those may not be made, or there are none (podhost), that is said once.
  void tell(const PodEvent& event, Time now) override;
  void wind_up() override {
    calls_.wind_up();
    if (pullers_) pullers_->wind_up();
  }
  const std::string& image() const override { return maker_.image(); }
  std::string slot_constraint() const override;
  std::string slot_pod_attribute() const override { return "K8SPodName"; }
  std::vector<JobClause> jobs_taken() const override {
    if (!maker_.has_payloads()) return {};
    return container_jobs(settings_.default_image, settings_.pilot_jobs, settings_.pod_lifetime,
                          maker_.image_files());
  }
  PilotAttributes pilot_attributes() const override { return maker_.pilot_attributes(); }

 private:
  struct Look;
  void delete_pod(const std::string& name, const Json& conditions, std::function<void(Result<void>)> done);
  void post(const Json& pod, std::function<void(Result<void>)> done);
  // The pod of this name as the maker makes it; without spare containers where only those are refused.
  void post_made(const Group& group, const Json& pod, std::function<void(Result<void>)> done);
  void leave_out_spares(const std::string& why);
  // There is a pod of this name: was it this one, whose answer was lost?
  void compare(const Json& pod, const Error& conflict, std::function<void(Result<void>)> done);
  void read_quota(const std::shared_ptr<Look>& look);
  void read_node_sizes(const std::shared_ptr<Look>& look);
  void read_scale_ups(const std::shared_ptr<Look>& look);
  void finish(const std::shared_ptr<Look>& look);
  bool believed(Look& look, std::size_t nodes);
  List avoided_hosts() const;
  struct MadeAs;
  bool is_outdated(const Pod& pod, MadeAs& made_as) const;
  std::string pods_path(std::string_view name = {}) const;

  kube::Calls calls_;
  KubernetesSettings settings_;
  mutable std::mutex making_;  // what fit() shares with the loop, which alone changes the maker
  PodMaker maker_;
  PodFeed feed_;
  ScaleUps scale_ups_;
  // What the last look saw of pods that may be removed, and so what the decisions are about: the feed may
  // know more by now.
  std::map<std::string, std::pair<std::string, std::string>> judged_;  // uid and version by name
  std::unique_ptr<Pullers> pullers_;                                   // none where one look is all
  std::vector<Resources> nodes_;
  std::size_t nodes_seen_ = 0;  // how many they were
  Time fewer_since_;            // half of them are gone since then; the epoch: they are not
  bool terminating_ = false;    // its pods have a deadline
  std::map<std::string, std::string> host_names_;  // of the nodes where it is not the node's name
  std::vector<std::string> avoid_;
  std::map<Group, GroupDemand> wanted_;
  mutable std::map<Group, Result<Resources>> needs_;  // of the groups that fit() had last
  std::vector<Pod> with_spares_;                      // of the last look
  std::map<std::string, Time> told_;                  // pods by name, and when they were told what is likely
  std::map<std::string, Time> slow_;  // jobs' images that kept a new pod waiting, and until when they rest
  Time nodes_read_;
  Time looked_;
  bool no_events_ = false;  // the API does not take them
  bool no_telling_ = false;
};

}  // namespace glidepod::provisioner
