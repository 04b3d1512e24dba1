#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/condor/classad.hpp"
#include "lib/condor/command.hpp"

namespace glidepod::condor {

struct Schedd {
  std::string name;
  std::string identity;  // who the collector authenticated it as
};

// Questions to one pool through condor_status and condor_q. Each answer goes to on_ad as it arrives; on_bad
// gets what could not be read. Callbacks come from the loop, on_end last.
class Pool {
 public:
  // collector: empty for the one of this machine's configuration; "a,b": those of one pool, each with all ads
  // (high availability), of which one is asked, and the next where it does not answer.
  Pool(CommandRunner& runner, const std::string& collector, Milliseconds time_limit);

  struct Answer {
    std::function<void(const Ad&)> on_ad;
    std::function<void(std::string)> on_bad;
    std::function<void(Result<void>)> on_end;
  };

  void schedds(Answer answer);
  // Slots, the dynamic ones included. No attributes: all that they have.
  void slots(const std::string& constraint, const std::vector<std::string>& attributes, Answer answer);
  // When the last finished negotiation cycle looked at the usage, which it does after fetching the slots' ads
  // and before matching. It is LastUpdate of any of the accounting ads that the negotiator then sends.
  void cycles(Answer answer);
  // Puts slots' ads into the collector, in the place of those of the same names; takes ADVERTISE_STARTD.
  // text: ads in HTCondor's old syntax, an empty line between them.
  void advertise_slots(std::string text, std::function<void(Result<void>)> done);
  // What the negotiator tells of accounting groups and of active submitters who have ever had a slot, as of
  // its last cycle (Matchmaker::forwardAccountingData).
  void accounting(Answer answer);
  // One ad for each combination of the attributes' values, its JobCount the number of jobs, counted by the
  // schedd. Every attribute that the constraint uses must be among the attributes: condor_q applies it again
  // to the result. Attributes that others refer to come along by themselves, rounded as the schedd is
  // configured to.
  void job_groups(const std::string& schedd, const std::string& constraint,
                  const std::vector<std::string>& attributes, Answer answer);
  // One job, "12.0", with all its attributes; no ad if the schedd does not know it. For a job that has left
  // the queue: some attributes, from the schedd's history.
  void job(const std::string& schedd, const std::string& id, Answer answer);
  void past_job(const std::string& schedd, const std::string& id, Answer answer);
  // Which of these expressions are true of the job, as HTCondor sees it; an empty answer where it is gone.
  void holds(const std::string& schedd, const std::string& id, const std::vector<std::string>& expressions,
             std::function<void(Result<std::vector<bool>>)> done);

 private:
  void ask_collector(const std::vector<std::string>& argv, Answer answer);
  void ask_collector(const std::vector<std::string>& argv, std::size_t asked, Answer answer);
  // The accounting ads that the negotiator sends to the collector.
  void ask_accountant(std::string attributes, Answer answer);
  Command command(std::vector<std::string> argv) const;
  void ask(std::vector<std::string> argv, Answer answer);

  CommandRunner& runner_;
  std::vector<std::string> collectors_;
  // The collector that answered last. Shared, since an answer may outlive this object.
  std::shared_ptr<std::size_t> good_ = std::make_shared<std::size_t>(0);
  Milliseconds time_limit_;
};

}  // namespace glidepod::condor
