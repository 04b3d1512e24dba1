#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/condor/pool.hpp"
#include "provisioner/demand/budget.hpp"
#include "provisioner/demand/group.hpp"
#include "provisioner/demand/images.hpp"
#include "provisioner/demand/offers.hpp"
#include "provisioner/demand/pilot_ad.hpp"
#include "provisioner/demand/priorities.hpp"
#include "provisioner/demand/resources.hpp"

namespace glidepod::provisioner {

// Idle jobs of one group.
struct GroupDemand {
  std::int64_t idle = 0;
  std::int64_t unmaterialized = 0;             // of late-materialised clusters, at most the lookahead of each
  std::map<std::string, std::int64_t> owners;  // the idle ones by owner
  std::optional<Resources> largest;  // what they ask for themselves, of each the most; none: not known
  std::vector<ImageDemand> images;   // of the idle ones, as far as they are known: the most wanted
  std::optional<Offers> offers;      // where the negotiator is asked, too
};

// Idle jobs that count in no group, since no pilot that is made for them will ever take them.
struct UnmetDemand {
  std::string why;  // of one of them: Unmet::why
  std::int64_t idle = 0;
  std::map<std::string, std::int64_t> owners;
};
// By the clause of their requirements, of which there are at most so many; others are under an empty one.
using UnmetDemands = std::map<std::string, UnmetDemand>;
inline constexpr std::size_t k_most_unmet = 50;

// What the pool waits for, as of one moment.
struct Demand {
  std::map<Group, GroupDemand> groups;
  UnmetDemands unmet;
  // Why nothing is known (no collector, or every schedd failed), which is not the same as no jobs.
  std::optional<std::string> blind;
  std::vector<std::string>
      problems;  // what cost only itself: a schedd that did not answer, ads that were bad
  std::map<std::string, std::string> silent;  // of these: schedds without a whole answer, and why
  std::int64_t schedds_asked = 0, schedds_failed = 0, bad_ads = 0;
  std::int64_t schedds_vanished = 0;  // of the failed: the collector has them no more
  Priorities priorities;
};

// Where the demand comes from; a fake one is a few lines.
class DemandSource {
 public:
  virtual ~DemandSource() = default;
  // Calls done once, from the loop. Not to be called again before that.
  virtual void fetch(std::function<void(Demand)> done) = 0;
  // Called once something was decided by the last fetch, and is now carried out.
  virtual void follow_up(std::chrono::sys_seconds) {}
};

// The trusted schedds of an HTCondor pool.
class CondorDemand : public DemandSource {
 public:
  enum class Namespace : std::uint8_t { matched, ignored };
  // name_space is what jobs must ask for by RequestK8SNamespace, where that is matched; taken is which jobs
  // the pilots take, an expression over the job (empty: all).
  CondorDemand(condor::CommandRunner& runner, HtcondorSettings settings, PolicySettings policy,
               const std::string& name_space, Namespace matching, const std::string& taken = {});
  void fetch(std::function<void(Demand)> done) override;
  // Takes over which schedds the other one has seen, as far as they still count.
  void inherit(const CondorDemand& other);
  // What the pilots' ads have beside HTCondor's own and ours. Where that is known, jobs that require more are
  // no demand.
  void set_pilots(PilotAttributes pilots);
  // For tests.
  void set_clock(std::function<SteadyTime()> clock) { clock_ = std::move(clock); }
  void set_processor_clock(AnswerBudget::Clock clock) { processor_ = std::move(clock); }

 private:
  struct Fetch;
  void tell_vanished(Fetch& fetch);
  void ask_next(const std::shared_ptr<Fetch>& fetch);
  struct Groups;
  void ask_schedd(const std::shared_ptr<Fetch>& fetch, const std::string& schedd);
  void look_ahead(const std::shared_ptr<Fetch>& fetch, const std::string& schedd,
                  const std::shared_ptr<Groups>& groups);
  static void within_budget(Fetch& fetch, Groups& groups, const std::string& schedd, const condor::Ad& ad,
                            const std::function<void(const std::string& owner)>& read);
  void count(Fetch& fetch, Groups& groups, const std::string& schedd, const condor::Ad& ad,
             const std::string& owner) const;
  void end_schedd(const std::shared_ptr<Fetch>& fetch, const std::string& schedd, const Groups& groups,
                  const Result<void>& end);

  Result<Group> group_in(const condor::Ad& ad) const;

  PilotAttributes pilots_;
  HtcondorSettings settings_;
  PolicySettings policy_;
  condor::Pool pool_;
  struct Sight {
    std::string identity;
    SteadyTime at;
  };
  std::map<std::string, Sight> seen_;  // schedds that count
  std::function<SteadyTime()> clock_ = [] { return std::chrono::steady_clock::now(); };
  AnswerBudget::Clock processor_ = AnswerBudget::processor_time;
  bool patterns_;
  Result<std::pair<std::string, std::vector<std::string>>> query_;  // constraint and attributes
};

// What the query wants of a job, part by part, and whose rule each is.
struct QueryPart {
  enum class From : std::uint8_t { status, universe, name_space, pilots, settings };
  From from;
  std::string expression;
  // What a schedd is asked for, where that is more: jobs that come back and do not meet expression are told.
  std::string asked = {};
};
std::vector<QueryPart> query_parts(const HtcondorSettings& settings, const std::string& name_space,
                                   CondorDemand::Namespace matching, const std::string& taken = {});

// The constraint for a schedd and the attributes that it needs, or why additional_requirements cannot be
// used.
Result<std::pair<std::string, std::vector<std::string>>> job_query(const HtcondorSettings& settings,
                                                                   const std::string& name_space,
                                                                   CondorDemand::Namespace matching,
                                                                   const std::string& taken = {});

// What a job asks for itself: of a group, or less. What it does not say is the group's.
Resources request_of(const condor::Ad& ad, const Group& group);

// The group that a job (or an aggregate of jobs) belongs to: unset, undefined and small sizes take PRP's
// defaults, others are rounded up to their bucket, volumes and labels that jobs may not ask for are left out.
Result<Group> group_of(const condor::Ad& ad, const PolicySettings& policy);

}  // namespace glidepod::provisioner
