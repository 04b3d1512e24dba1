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

// What a session's supervisor writes into its pipe: `started` or `failed`, and after `started` also `ended`.
// If the pipe ends without that, the supervisor was killed.
struct SessionReport {
  enum class What : std::int32_t { started, failed, ended };
  What what = What::started;
  ChildReport failure;
  ExitStatus status;
};

// A session that is being opened or runs. Its parent is the supervisor, one of glue's own processes and a
// subreaper. So glue knows every process that belongs to the session, however it tries to get away, and ends
// it with the session. SIGTERM makes the supervisor end the session.
struct OpenedSession {
  pid_t supervisor = -1;
  Fd report;    // the pipe with SessionReports
  Fd terminal;  // the terminal's master side, until it is handed over
  bool failed = false;
  std::optional<ExitStatus> status;
  wire::Launch launch;
  std::vector<std::string> candidates;
};

// Checks a message. The Error says why it must be refused.
Result<void> check_session(const wire::OpenSession& message, std::size_t fds);

// The job's launch, with the session's own program and variables.
wire::Launch launch_of_session(const wire::Launch& job, const wire::SessionRequest& request);

// Forks. fds: stdin, stdout and stderr, or none for a terminal.
Result<OpenedSession> open_session(wire::Launch launch, const wire::SessionRequest& request,
                                   const std::vector<Fd>& fds, const Filter& filter);

// What a report of failure means. Most often the image has no shell.
Error explain_session(const ChildReport& report, const OpenedSession& session, const std::string& scratch);

// The environment, in which these variables replace those of the same names.
std::vector<std::string> replace_variables(std::vector<std::string> environment,
                                           const std::vector<std::string>& with);

}  // namespace glidepod::glue
