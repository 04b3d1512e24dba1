#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/condor/pool.hpp"
#include "provisioner/demand/contract.hpp"
#include "provisioner/demand/demand.hpp"

namespace glidepod::provisioner {

// Something that must be true of a job, and whose rule it is.
struct Clause {
  enum class From : std::uint8_t {
    universe,      // the query
    name_space,    // the query or START
    pilots,        // the contract of START and query
    settings,      // [htcondor] additional_requirements: the query
    start,         // the backend's additional_requirements: START
    requirements,  // the job's own, without those that submit adds to every job
  };
  From from;
  std::string expression;
  bool of_job = true;         // over the job alone; else only HTCondor can tell, with a slot at hand
  std::optional<bool> holds;  // none: nobody told
  std::optional<JobClause> of_pilots = {};  // their contract's
};

// The rules for jobs that are not the job's own.
struct JobRules {
  std::vector<QueryPart> query;
  std::vector<JobClause> taken;  // what its part of the pilots consists of
  std::string start;             // additional_requirements of the pilots
  std::string name_space;        // not empty: pilots want jobs to ask for it, as this expression says
};
// The clauses of all rules for this job.
std::vector<Clause> clauses_of(const JobRules& rules, const condor::Ad& job);

// What the pool says of one job.
struct JobLook {
  enum class Where : std::uint8_t { nowhere, queue, history };
  std::string id;
  Where where = Where::nowhere;
  std::vector<std::string> schedds;  // that have it
  bool counts = false;               // the first of them is one whose jobs count
  condor::Ad ad;
  std::vector<Clause> clauses;
  std::int64_t schedds_asked = 0;
  std::vector<std::string> problems;  // schedds that did not answer, in their words
  std::optional<std::string> blind;   // why the list of schedds could not be had
};

// Looks for a job in all queues of the pool, then in the histories. schedd: empty for all. Must live until
// done was called.
class JobInquiry {
 public:
  JobInquiry(condor::CommandRunner& runner, HtcondorSettings settings, JobRules rules);
  void ask(const std::string& id, const std::string& schedd, std::function<void(JobLook)> done);

 private:
  struct Asked {
    std::string schedd;
    bool counts = false;
  };
  using Question = void (condor::Pool::*)(const std::string&, const std::string&, condor::Pool::Answer);
  void ask_all(Question question, JobLook::Where where);
  void ask_next();
  void found(const Asked& asked, const condor::Ad& ad);
  void all_answered();
  void judge();

  HtcondorSettings settings_;
  JobRules rules_;
  condor::Pool pool_;
  JobLook look_;
  std::function<void(JobLook)> done_;
  std::vector<Asked> schedds_;
  Question question_ = nullptr;
  JobLook::Where where_ = JobLook::Where::nowhere;
  std::size_t next_ = 0, under_way_ = 0;
};

}  // namespace glidepod::provisioner
