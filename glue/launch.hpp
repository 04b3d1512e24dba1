#pragma once

#include <array>
#include <string>
#include <vector>

#include "glue/job_child.hpp"
#include "glue/links.hpp"
#include "glue/seccomp.hpp"
#include "lib/base/fd.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// The user that a Launch names.
User user_of(const wire::Launch& launch);

// Checks whether glue may do what the message says, whatever the image holds.
Result<void> check_launch(const wire::Launch& launch, std::size_t fds);

// Checks whether a job may have these streams. The agent has judged them already (lib/wire/streams.hpp); this
// checks them again by what is in this container.
Result<void> check_streams(const std::vector<Fd>& streams, const std::string& scratch);

// What the child's report means, in words for the job's owner. fault_of() this Error tells who has to act.
Error explain(const ChildReport& report, const wire::Launch& launch,
              const std::vector<std::string>& candidates, const std::string& scratch);

// All that a forked child needs. The plan points into `environment` and into the launch.
struct Prepared {
  std::vector<std::string> environment;
  ChildPlan plan;
};
Prepared prepare(const wire::Launch& launch, const std::array<int, 3>& stdio, int program,
                 const Filter& filter);

// A forked child on its way to the job's program.
struct Launched {
  pid_t pid = -1;
  std::vector<std::string> candidates;
};
struct Pipe {
  Fd read, write;
};
// A pipe for a child's report. It does not block, and exec closes it. It becomes readable with a ChildReport,
// or with its end once the program runs.
Result<Pipe> report_pipe();
// Forks. fds: stdin, stdout, stderr, and the program if one is attached. report: where the child's report
// goes.
Result<Launched> start(const wire::Launch& launch, const std::vector<Fd>& fds, const Filter& filter,
                       const Fd& report);

}  // namespace glidepod::glue
