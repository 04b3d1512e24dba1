#pragma once

#include <memory>
#include <string>

#include "lib/condor/pool.hpp"
#include "provisioner/offline/offers.hpp"

namespace glidepod::provisioner {

// What the query finds, and what the pool's negotiator makes of pods for it: these are offered as offline
// ads, copies of pilots' own.
class OfflineDemand : public DemandSource {
 public:
  struct Settings {
    std::string pilots;      // which slots are this provisioner's pilots'
    std::int64_t most = 20;  // ads of a group
    Seconds lifetime{1200};  // of an ad
    Offering offering = Offering::told;
    std::string startd_identity_regexp = ".*";
  };
  // query must outlive it, as must the runner.
  OfflineDemand(DemandSource& query, condor::CommandRunner& runner, const HtcondorSettings& htcondor,
                Settings settings);

  // Where it decides and the pool does not say what it makes of the offers, the demand is blind.
  void fetch(std::function<void(Demand)> done) override;
  // Puts the ads of what was fetched last into the collector. What is wrong with that the next fetch tells.
  void follow_up(Time now) override;

 private:
  struct Look;
  void read_pilots(const std::shared_ptr<Look>& look);
  void read_pilot(const std::shared_ptr<Look>& look, bool gpus, const std::string& name);
  void finish(const std::shared_ptr<Look>& look);

  DemandSource& query_;
  condor::Pool pool_;
  Settings settings_;
  // The newest pilot's ad of each kind, without GPUs and with, and when that pilot started.
  struct Pilot {
    condor::Ad ad;
    std::int64_t started = 0;
  } pilots_[2];
  // As of the last fetch.
  std::map<Group, GroupDemand> queried_;
  Negotiation seen_;
  std::string not_put_;  // why the last ads could not be put there
};

}  // namespace glidepod::provisioner
