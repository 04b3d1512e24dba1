#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/wire/messages.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/binds.hpp"
#include "pilot-agent/core/doubts.hpp"
#include "pilot-agent/core/ending.hpp"
#include "pilot-agent/core/lost_jobs.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// How a job has ended, by all that is known at this time.
Verdict verdict_on(const Job& job, Time now);

// What clients are told of their requests, and the counts of that.
class Answers {
 public:
  explicit Answers(Actions& actions) : actions_(actions) {}

  // The request gets no container, or its job is lost.
  void fail(const Request& request, wire::Fault fault, std::string message);
  // The same for an image that may be at fault. If the job is held, the reason says how often the image was
  // tried. counts: as in Trouble.
  void fail_in_doubt(const Request& request, const Doubts::Doubt& doubt, const std::string& message,
                     bool counts, Time now);
  // How the job has ended. The other form is for a job whose glue is gone.
  void tell_end(const Job& job, Time now);
  void tell_end(const Request& request, const EndFacts& facts, Time now) { tell(request, facts, {}, now); }
  // Jobs that are answered once it is known how they ended; and their answers.
  LostJobs lost_jobs;
  void tell_lost(const std::vector<LostJobs::Lost>& jobs, Time now);

  // A job got its container.
  void bound(std::string_view how, std::chrono::microseconds in) { binds_.bound(how, in); }
  const Binds& binds() const { return binds_; }
  // The last job that was held for memory or disk, and what it used.
  const std::string& shortage() const { return shortage_; }

 private:
  void tell(const Request& request, const EndFacts& facts, const wire::Ran& ran, Time now);

  Actions& actions_;
  Binds binds_;
  std::string shortage_;
};

}  // namespace glidepod::agent
