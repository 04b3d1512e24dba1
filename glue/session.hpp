#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glue/job_child.hpp"
#include "glue/links.hpp"
#include "glue/seccomp.hpp"
#include "lib/base/child.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What a session's supervisor writes into its pipe: started or failed, then, after started, ended. The pipe's
// end without that means that the supervisor was killed.
struct SessionReport {
  enum class What : std::int32_t { started, failed, ended };
  What what = What::started;
  ChildReport failure;
  ExitStatus status;
};

// A session that is on its way or runs. Its parent is a process of glue's own, the supervisor, which is a
// subreaper: whatever the session leaves, however it tries to get away, is known to be its, and ends with it.
// SIGTERM makes the supervisor end it.
struct OpenedSession {
  pid_t supervisor = -1;
  Fd report;    // readable: SessionReports
  Fd terminal;  // the master side, until somebody else has it
  bool failed = false;
  std::optional<ExitStatus> status;
  wire::Launch launch;  // as the job's, with the session's own program
  std::vector<std::string> candidates;
};

// The Error of a message that must be refused says why.
Result<void> check_session(const wire::OpenSession& message, std::size_t fds);

// Forks. fds are stdin, stdout and stderr, or none for a terminal.
Result<OpenedSession> open_session(const wire::Launch& job, const wire::SessionRequest& request,
                                   const std::vector<Fd>& fds, const Filter& filter);

// What a report of failure means: above all, that the image has no shell.
Error explain_session(const ChildReport& report, const OpenedSession& session, const std::string& scratch);

// The job's environment with these in place of its own of the same names.
std::vector<std::string> replace_variables(std::vector<std::string> environment,
                                           const std::vector<std::string>& with);

}  // namespace glidepod::glue
