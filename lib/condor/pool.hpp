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
  std::string identity;  // the identity that the collector authenticated
};

// Asks one pool through condor_status and condor_q. on_ad gets each ad as it arrives, and on_bad what could
// not be read. The loop calls these handlers, on_end as the last.
class Pool {
 public:
  // collector: the collector to ask; empty: the one of this machine's configuration. "a,b" names the
  // collectors of one pool with high availability, each of which has all ads. One is asked, and the next if
  // it does not answer.
  Pool(CommandRunner& runner, const std::string& collector, Milliseconds time_limit);

  struct Answer {
    std::function<void(const Ad&)> on_ad;
    std::function<void(std::string)> on_bad;
    std::function<void(Result<void>)> on_end;
  };

  void schedds(Answer answer);
  // Asks for slots, also dynamic ones. attributes: which ones; empty: all.
  void slots(const std::string& constraint, const std::vector<std::string>& attributes, Answer answer);
  // Asks when the last finished negotiation cycle looked at the usage. The negotiator does this after it has
  // fetched the slots' ads and before it matches. The time is LastUpdate of each accounting ad that it sends
  // then.
  void cycles(Answer answer);
  // Puts ads of slots into the collector, where they replace those of the same names. This needs the right
  // ADVERTISE_STARTD. text: ads in HTCondor's old syntax, with an empty line between them.
  void advertise_slots(std::string text, std::function<void(Result<void>)> done);
  // Asks for what the negotiator tells of accounting groups, and of active submitters who have ever had a
  // slot, as of its last cycle (Matchmaker::forwardAccountingData).
  void accounting(Answer answer);
  // Has the schedd count jobs. The answer has one ad for each combination of the attributes' values; JobCount
  // is the number of jobs. Every attribute that the constraint uses must be among the attributes, since
  // condor_q applies the constraint again to the result. The schedd adds attributes that others refer to,
  // rounded as it is configured to.
  void job_groups(const std::string& schedd, const std::string& constraint,
                  const std::vector<std::string>& attributes, Answer answer);
  // Asks for one job, such as "12.0", with all its attributes. There is no ad if the schedd does not know the
  // job. For a job that has left the queue there are some attributes, from the schedd's history.
  void job(const std::string& schedd, const std::string& id, Answer answer);
  void past_job(const std::string& schedd, const std::string& id, Answer answer);
  // Asks HTCondor which of these expressions are true for the job. The answer is empty if the job is gone.
  void holds(const std::string& schedd, const std::string& id, const std::vector<std::string>& expressions,
             std::function<void(Result<std::vector<bool>>)> done);

 private:
  void ask_collector(const std::vector<std::string>& argv, Answer answer);
  void ask_collector(const std::vector<std::string>& argv, std::size_t asked, Answer answer);
  // Asks for the accounting ads that the negotiator sends to the collector.
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
