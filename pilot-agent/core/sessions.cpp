// Sessions beside a running job (condor_ssh_to_job).

#include <algorithm>

#include "lib/base/log.hpp"
#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

void Core::on_enter(const Visit& visit) {
  const auto refuse = [&](std::string_view why) {
    actions_.note("event=visit_refused uid={} sandbox={} reason={}", visit.uid, word(visit.sandbox),
                  quoted(why));
    actions_.add(Refuse{visit.client, wire::Fault::infrastructure, std::string(why)});
  };
  if (stage_ == Stage::finishing) return refuse("the pilot is ending");
  // The user decides about access. The sandbox only tells this user's jobs apart.
  const auto may_enter = [&](const Container& container) {
    const auto* running = std::get_if<Running>(&container.state);
    if (running == nullptr || running->job.goodbye()) return false;
    const Request& request = running->job.request;
    return !request.any_image && request.client != 0 && request.uid == visit.uid && !visit.sandbox.empty() &&
           request.sandbox == visit.sandbox;
  };
  const auto found = std::ranges::find_if(containers_, may_enter);
  if (found == containers_.end()) return refuse("no job of this user runs in that folder");
  Job& job = *found->job();
  const SessionId session = actions_.next_session();
  job.sessions.push_back({session, visit.client, visit.what});
  if (visit.what == wire::Enter::What::watch) return;
  actions_.note("event=session job={} owner={} container={} session={}", word(job.request.job),
                word(job.request.owner), found->name, session);
  actions_.add(OpenSession{found->glue, job.id, session, visit.client});
}

ClientId Core::on_session_started(GlueId glue, JobId job, SessionId id) {
  const Container* container = containers_.of_job(glue, job);
  if (container == nullptr) return 0;
  const auto& sessions = container->job()->sessions;
  const auto found = std::ranges::find(sessions, id, &Session::id);
  return found == sessions.end() ? 0 : found->client;
}

std::optional<Session> Core::take_session(GlueId glue, JobId job, SessionId id) {
  Container* container = containers_.of_job(glue, job);
  if (container == nullptr) return std::nullopt;
  auto& sessions = container->job()->sessions;
  const auto found = std::ranges::find(sessions, id, &Session::id);
  if (found == sessions.end()) return std::nullopt;
  const Session session = *found;
  sessions.erase(found);
  return session;
}

void Core::on_session_ended(GlueId glue, const wire::SessionEnded& ended) {
  const auto session = take_session(glue, ended.job, ended.session);
  if (!session) return;
  actions_.note("event=session_ended session={} status={}", ended.session, quoted(ended.status.to_string()));
  if (session->client != 0) actions_.add(Answer{session->client, ended.status});
}

void Core::on_session_failed(GlueId glue, const wire::SessionFailed& failed) {
  const auto session = take_session(glue, failed.job, failed.session);
  if (!session) return;
  actions_.note("event=session_failed session={} reason={}", failed.session, quoted(failed.message));
  if (session->client != 0) actions_.add(Refuse{session->client, failed.fault, failed.message});
}

void Core::leave_session(ClientId client) {
  if (client == 0) return;
  for (Container& container : containers_) {
    Job* job = container.job();
    if (job == nullptr) continue;
    const auto found = std::ranges::find(job->sessions, client, &Session::client);
    if (found == job->sessions.end()) continue;
    if (found->what == wire::Enter::What::watch) {
      job->sessions.erase(found);
    } else {
      found->client = 0;
      actions_.add(CloseSession{container.glue, job->id, found->id});
    }
  }
}

// No session outlives its job: glue has ended the sessions, or is gone together with them.
void Core::end_visits(const Job& job) {
  for (const Session& session : job.sessions) {
    if (session.client == 0) continue;
    if (session.what == wire::Enter::What::watch)
      actions_.add(Answer{session.client, ExitStatus::exited(0)});
    else
      actions_.add(Refuse{session.client, wire::Fault::infrastructure, "the job has ended"});
  }
}

}  // namespace glidepod::agent
