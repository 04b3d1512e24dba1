// Sessions: processes beside the job's main one, for its owner (condor_ssh_to_job).

#include <signal.h>

#include "glue/events.hpp"
#include "glue/reports.hpp"
#include "glue/server.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

void Server::on_open_session(const wire::OpenSession& message, const std::vector<Fd>& fds) {
  const auto refuse_with = [&](const std::string& why) {
    say("event=session_refused session={} reason={}", message.session, value(why));
    link_.send(wire::SessionFailed{message.job, message.session, wire::Fault::infrastructure, why});
  };
  if (const auto good = check_session(message, fds.size()); !good) return refuse_with(good.error().message());
  if (const auto good = check_streams(fds, options_.scratch_directory); !good)
    return refuse_with(good.error().message());
  if (!job_ || job_->launch.job != message.job || job_->stage >= Job::Stage::ending)
    return refuse_with("the job has ended");
  if (job_->stage <= Job::Stage::launching) return refuse_with("the job has not started yet");
  if (leaving_) return refuse_with("the container is about to end");
  if (job_->sessions.contains(message.session)) return refuse_with("a session of this number exists");
  auto opened = open_session(job_->launch, message.request, fds, *filter_);
  if (!opened) return refuse_with(opened.error().message());
  auto& session = job_->sessions[message.session] = std::move(opened).value();
  const auto watched = loop_.watch(session.report.get(), EPOLLIN,
                                   [this, id = message.session](std::uint32_t) { on_session_report(id); });
  if (watched) return;
  // Its process ends when it is told to, or with the job; nobody waits for it.
  signal_child(session.supervisor, SIGTERM);
  job_->sessions.erase(message.session);
  refuse_with(watched.error().message());
}

void Server::on_session_report(std::uint64_t id) {
  while (true) {
    OpenedSession& session = job_->sessions.at(id);
    SessionReport report;
    const Record told = read_record(session.report, &report);
    if (told == Record::none) return;
    if (told == Record::whole) {
      take_session_report(id, report);
      continue;
    }
    if (!session.failed) {
      const auto status = session.status.value_or(ExitStatus::signaled(SIGKILL));
      say("event=session_ended job={} session={} status={}", job_->launch.job, id, value(status.to_string()));
      link_.send(wire::SessionEnded{job_->launch.job, id, status});
    }
    loop_.forget(session.report.get());
    job_->sessions.erase(id);
    return;
  }
}

void Server::take_session_report(std::uint64_t id, const SessionReport& report) {
  OpenedSession& session = job_->sessions.at(id);
  if (report.what == SessionReport::What::ended) {
    session.status = report.status;
  } else if (report.what == SessionReport::What::failed) {
    const auto why = explain_session(report.failure, session, options_.scratch_directory);
    say("event=session_failed job={} session={} reason={}", job_->launch.job, id, value(why.message()));
    link_.send(wire::SessionFailed{job_->launch.job, id, fault_of(why), why.message()});
    session.failed = true;
  } else {
    const bool terminal = session.terminal.valid();
    say("event=session_started job={} session={} terminal={}", job_->launch.job, id, terminal);
    link_.send(wire::SessionStarted{job_->launch.job, id},
               terminal ? std::vector<int>{session.terminal.get()} : std::vector<int>{});
    session.terminal.reset();  // it hangs up once the agent has closed its own
  }
}

void Server::on_close_session(const wire::CloseSession& message) {
  if (!job_ || job_->launch.job != message.job) return;
  const auto session = job_->sessions.find(message.session);
  if (session != job_->sessions.end() && session->second.supervisor != -1)
    signal_child(session->second.supervisor, SIGTERM);
}

// Sessions end with the job, whose end is told.
void Server::forget_sessions() {
  for (const auto& [id, session] : job_->sessions) loop_.forget(session.report.get());
}

}  // namespace glidepod::glue
