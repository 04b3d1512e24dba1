#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/kube/client.hpp"
#include "provisioner/backends/backend.hpp"

namespace glidepod::provisioner {

// Several named places (place.hpp) as one backend, each with a backend of its own. One that does not answer
// is unseen; blind is only who sees none.
class Places : public Backend {
 public:
  struct Place {
    PlacePolicy policy;                    // its image as the place itself calls it
    std::string name_space, domain;        // by which its slots are known
    std::unique_ptr<kube::Client> client;  // that the backend needs, if it does
    std::unique_ptr<Backend> backend;
  };
  // How long a look waits for a place, whose own requests are repeated for longer.
  static constexpr Milliseconds k_patience{20'000};

  Places(Loop& loop, std::vector<Place> places, Milliseconds patience = k_patience);
  ~Places() override;
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  void look(Time now, std::function<void(Seen)> done) override;
  Demand fit(Demand demand, Capacity& capacity) const override;
  void avoid(const std::vector<std::string>& nodes) override;
  void want(const std::map<Group, GroupDemand>& groups) override;
  void create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) override;
  void remove(const std::string& name, std::function<void(Result<void>)> done) override;
  void drain(const Draining& draining, std::function<void(Result<void>)> done) override;
  void tell(const PodEvent& event, Time now) override;
  void wind_up() override;
  const std::string& image() const override { return image_; }
  std::vector<PlacePolicy> places() const override;
  std::string slot_constraint() const override;
  std::string slot_pod_attribute() const override;
  std::vector<std::string> slot_place_attributes() const override { return {"K8SNamespace", "K8SDomain"}; }
  std::string place_of_slot(const condor::Ad& slot) const override;
  std::vector<JobClause> jobs_taken() const override;
  PilotAttributes pilot_attributes() const override;

 private:
  struct Look;
  void answered(const std::shared_ptr<Look>& look, std::size_t place, Seen seen);
  void finish(const std::shared_ptr<Look>& look);
  Place* find(std::string_view name);
  void after(Milliseconds delay, std::function<void()> function);

  Loop& loop_;
  std::vector<Place> places_;
  Milliseconds patience_;
  std::vector<bool> busy_;  // places with a look under way, which may be that of an earlier cycle
  std::string image_;
  std::map<std::uint64_t, Loop::TimerId> timers_;
  std::uint64_t last_timer_ = 0;
};

}  // namespace glidepod::provisioner
