#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "glue/seccomp.hpp"
#include "glue/session.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// The sessions beside one job (condor_ssh_to_job), by their numbers. A number is free again when its session
// has ended or failed.
class JobSessions {
 public:
  using Message = std::variant<wire::SessionStarted, wire::SessionEnded, wire::SessionFailed>;
  // Takes what becomes of a session that was opened; fds: what the message carries.
  using Tell = std::function<void(const Message& message, const std::vector<int>& fds)>;
  JobSessions(Loop& loop, std::uint64_t job, std::string scratch, Tell tell)
      : loop_(loop), job_(job), scratch_(std::move(scratch)), tell_(std::move(tell)) {}
  JobSessions(const JobSessions&) = delete;
  JobSessions& operator=(const JobSessions&) = delete;
  ~JobSessions() { forget(); }

  // Begins the session that a checked message asks for, by its own launch. An Error says why there is none.
  Result<void> open(wire::Launch launch, const wire::OpenSession& message, const std::vector<Fd>& fds,
                    const Filter& filter);
  // Has the session end, with all that it has left.
  void close(std::uint64_t number);
  // To be called for each child of this process that was reaped: its pid may be another's from now on.
  void reaped(pid_t pid);
  // From now on nothing is told of them: they end with the job.
  void forget();

 private:
  void on_report(std::uint64_t number);
  void take_report(std::uint64_t number, OpenedSession& session, const SessionReport& report);

  Loop& loop_;
  std::uint64_t job_;
  std::string scratch_;
  Tell tell_;
  std::map<std::uint64_t, OpenedSession> sessions_;
};

}  // namespace glidepod::glue
