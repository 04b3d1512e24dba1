#pragma once

#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/apptainer/command_line.hpp"

namespace glidepod::apptainer {

// What a process is given besides its arguments.
struct Surroundings {
  std::vector<std::string> environment;  // KEY=VALUE
  std::string cwd;
  std::uint32_t umask = 022;
  std::vector<wire::Limit> limits;

  static Surroundings of_this_process();
};

struct BindRequest {
  wire::Bind bind;
  Fd program;  // valid if bind.program_attached
};

// The message for the agent. Opens the files that the command line names (--env-file, a probe's program).
//
// HOME is --home's destination; without --home, -W's directory where the real apptainer would put an empty
// home there (--contain), else the caller's HOME.
//
// HTCondor newer than 23.9 may bind its condor_container_launcher.sh and put it before the command; its duty,
// to create $_CONDOR_SCRATCH_DIR/.condor_container_launched, goes to glue as launched_marker, and both are
// taken out of the message.
Result<BindRequest> make_request(const CommandLine& line, const Surroundings& surroundings);

}  // namespace glidepod::apptainer
