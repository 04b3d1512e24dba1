#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/wire/messages.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Visits to running jobs: sessions beside them (condor_ssh_to_job), and clients that only watch for their
// end.
class Visits {
 public:
  explicit Visits(Actions& actions) : actions_(actions) {}

  // Lets the visit into the job of this container.
  void open(const Visit& visit, const Container& container);
  void refuse(const Visit& visit, std::string_view why);
  // The client whose session this is; 0 if that client is gone.
  ClientId client_of(GlueId glue, JobId job, SessionId session) const;
  void ended(GlueId glue, const wire::SessionEnded& ended);
  void failed(GlueId glue, const wire::SessionFailed& failed);
  void client_gone(ClientId client);
  // No session outlives its job: glue has ended the sessions, or is gone together with them.
  void job_over(JobId job);

 private:
  struct Session {
    SessionId id = 0;
    GlueId glue = 0;
    JobId job = 0;
    ClientId client = 0;  // 0: it is gone, and glue has been told
    wire::Enter::What what = wire::Enter::What::session;
  };
  std::optional<Session> take(GlueId glue, JobId job, SessionId session);

  Actions& actions_;
  std::vector<Session> sessions_;
};

}  // namespace glidepod::agent
