#pragma once

#include <string>
#include <variant>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/apptainer/request.hpp"

namespace glidepod::apptainer {

// How it went, as the agent told it.
using Outcome = std::variant<ExitStatus, wire::Failed>;

struct HandoverOptions {
  std::string socket;
  // How long to stay without an agent. It is the pilot container's main process: with it goes the container,
  // this process and the starter included, and HTCondor runs the job elsewhere. Ending at once would let the
  // starter report an end of the job that never was.
  Milliseconds stay_without_agent = std::chrono::seconds(30);
  // This process's end is taken for the job's: it stays also where no agent has ever heard of the request.
  bool stands_for_job = false;
  Milliseconds tell_limit = std::chrono::seconds(2);  // for telling the starter where the job ran
};

// Those of the shipped program, for this socket. Nothing of them can be set from outside: a job's environment
// is that of the program which HTCondor starts for it. Tests link other ones (tests/apptainer/options.cpp).
HandoverOptions usual_options(std::string socket);

// Hands the request to the agent with this process's standard streams and waits for the end, passing signals
// on. An Error means that nothing was started, for one that no agent is listening.
Result<Outcome> hand_over(const BindRequest& request, const HandoverOptions& options);

// Opens /dev/null in place of each standard stream that is closed. To be called before any other descriptor
// is opened: it would get the free number.
Result<void> open_missing_streams();

}  // namespace glidepod::apptainer
