#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "provisioner/service/cycle.hpp"
#include "provisioner/why/job_look.hpp"

namespace glidepod::provisioner {

// One thing that stands between a job and a pilot, or that is good to know.
struct Finding {
  enum class Weight : std::uint8_t {
    stops,  // somebody must change something
    waits,  // time alone changes it
    note,
  };
  enum class Who : std::uint8_t { nobody, owner, pool_operator, site_admin };
  Weight weight = Weight::stops;
  std::string key;     // one word for scripts
  std::string what;    // what stands there
  std::string seen;    // the evidence: numbers, values, others' words
  std::string change;  // what to change, or to expect
  Who who = Who::nobody;
};
std::string_view to_string(Finding::Weight weight);
std::string_view to_string(Finding::Who who);

// Who holds the lease, where it was asked for.
struct LeaseLook {
  std::string name;  // empty: it was not
  std::string holder;
  std::optional<Seconds> age;  // since it was renewed; none: nobody has it
  std::string failure;         // not empty: it could not be read
  bool here = false;           // the holder runs on this host, so that the status is its
};

// All that is known, as of one moment.
struct Scene {
  Time now;
  JobLook job;
  Result<Group> group = error("not known");  // whose pods would take it
  std::optional<Unmet> unmet = {};           // why no such pod's pilot would take it
  bool gpu_jobs_only = false;                // what START says of pods with GPUs
  std::int64_t least_fill = 0;               // and of free ones, in percent
  HtcondorSettings htcondor;
  PolicySettings policy;
  Seconds sleep_time{120};
  Observation seen;
  Plan plan;              // what the next cycle would do
  bool recalled = false;  // by what the leader remembers too; else by what is seen alone
  nlohmann::json status;  // the running instance's last cycle, which knows breakers; null: not to be had
  std::string status_file;
  LeaseLook lease;
};

// The first reason first. Never empty.
std::vector<Finding> findings(const Scene& scene);

// The parts of findings(). of_job: the job and the rules for it alone; once something here stops it, the rest
// has no say.
std::vector<Finding> of_job(const Scene& scene);
// of_pods: for an idle job that pilots take, whether somebody decides, what, and what became of it. Throws
// where the status is none.
std::vector<Finding> of_pods(const Scene& scene);
// of_decision: the part of of_pods on whether somebody decides, and what. coming: pods are on their way to
// the job, so that a rule that holds others back is no reason.
std::vector<Finding> of_decision(const Scene& scene, bool coming);
// How much of a free pod of this group the job fills in percent: of its CPUs or memory, whichever is more.
double fill_of(const condor::Ad& job, const Group& pod);
// What the negotiator said when it last found nothing for the job, to be put behind other evidence.
std::string last_rejection(const condor::Ad& job);
// A job on hold, by its codes.
Finding of_hold(const condor::Ad& job);
// A clause that is not true of the job, or that nobody told of.
Finding of_clause(const Clause& clause, const condor::Ad& job);

}  // namespace glidepod::provisioner
