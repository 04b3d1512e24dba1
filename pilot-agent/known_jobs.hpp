#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/sandbox.hpp"

namespace glidepod::agent {

// Who the starters' jobs are. HTCondor 23.9 writes the job's ad into the sandbox as its own file. 25 writes
// it as the job's user, who may have another in its place: there a job is who its starter has said to our
// hook, until the starter ends.
class KnownJobs {
 public:
  // trusted: HTCondor's own user. Only he and root have starters.
  KnownJobs(std::string scratch, uid_t trusted) : scratch_(std::move(scratch)), trusted_(trusted) {}
  // The client is the process that sent the message.
  Result<SandboxJob> identify(const wire::Bind& bind, pid_t client);

 private:
  struct Told {
    Fd starter;  // a pidfd
    SandboxJob job;
  };
  std::string scratch_;
  uid_t trusted_;
  std::map<pid_t, Told> told_;
};

}  // namespace glidepod::agent
