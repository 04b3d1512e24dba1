#include "glue/job_sessions.hpp"

#include <signal.h>

#include "glue/events.hpp"
#include "glue/links.hpp"
#include "glue/processes.hpp"
#include "glue/reports.hpp"

namespace glidepod::glue {

Result<void> JobSessions::open(wire::Launch launch, const wire::OpenSession& message,
                               const std::vector<Fd>& fds, const Filter& filter) {
  if (sessions_.contains(message.session)) return error("a session of this number exists");
  auto opened = TRY(open_session(std::move(launch), message.request, fds, filter));
  auto watched = loop_.watch(opened.report.get(), EPOLLIN,
                             [this, number = message.session](std::uint32_t) { on_report(number); });
  if (watched)
    sessions_[message.session] = std::move(opened);
  else  // its process ends when it is told to, or with the job; nobody waits for it
    signal_child(opened.supervisor, SIGTERM);
  return watched;
}

void JobSessions::on_report(std::uint64_t number) {
  OpenedSession& session = sessions_.at(number);
  SessionReport report;
  Record told = Record::none;
  while ((told = read_record(session.report, &report)) == Record::whole) take_report(number, session, report);
  if (told == Record::none) return;
  if (!session.failed) {
    const auto status = session.status.value_or(ExitStatus::signaled(SIGKILL));
    say("event=session_ended job={} session={} status={}", job_, number, value(status.to_string()));
    tell_(wire::SessionEnded{job_, number, status}, {});
  }
  loop_.forget(session.report.get());
  sessions_.erase(number);
}

void JobSessions::take_report(std::uint64_t number, OpenedSession& session, const SessionReport& report) {
  if (report.what == SessionReport::What::ended) {
    session.status = report.status;
  } else if (report.what == SessionReport::What::failed) {
    const auto why = explain_session(report.failure, session, scratch_);
    say("event=session_failed job={} session={} reason={}", job_, number, value(why.message()));
    tell_(wire::SessionFailed{job_, number, fault_of(why), why.message()}, {});
    session.failed = true;
  } else {
    const bool terminal = session.terminal.valid();
    say("event=session_started job={} session={} terminal={}", job_, number, terminal);
    tell_(wire::SessionStarted{job_, number},
          terminal ? std::vector<int>{session.terminal.get()} : std::vector<int>{});
    session.terminal.reset();  // it hangs up once the agent has closed its own
  }
}

void JobSessions::close(std::uint64_t number) {
  const auto session = sessions_.find(number);
  if (session != sessions_.end() && session->second.supervisor != -1)
    signal_child(session->second.supervisor, SIGTERM);
}

void JobSessions::reaped(pid_t pid) {
  for (auto& [number, session] : sessions_)
    if (session.supervisor == pid) session.supervisor = -1;
}

void JobSessions::forget() {
  for (const auto& [number, session] : sessions_) loop_.forget(session.report.get());
}

}  // namespace glidepod::glue
