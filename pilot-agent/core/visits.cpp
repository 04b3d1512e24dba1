#include "pilot-agent/core/visits.hpp"

#include <algorithm>

#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

void Visits::open(const Visit& visit, const Container& container) {
  const Job& job = *container.job();
  const SessionId session = actions_.next_session();
  sessions_.push_back({session, container.glue, job.id, visit.client, visit.what});
  if (visit.what == wire::Enter::What::watch) return;
  actions_.note("event=session job={} owner={} container={} session={}", word(job.request.job),
                word(job.request.owner), container.name, session);
  actions_.add(OpenSession{container.glue, job.id, session, visit.client});
}

void Visits::refuse(const Visit& visit, std::string_view why) {
  actions_.note("event=visit_refused uid={} sandbox={} reason={}", visit.uid, word(visit.sandbox),
                quoted(why));
  actions_.add(Refuse{visit.client, wire::Fault::infrastructure, std::string(why)});
}

ClientId Visits::client_of(GlueId glue, JobId job, SessionId id) const {
  const auto found = std::ranges::find_if(sessions_, [&](const Session& session) {
    return session.id == id && session.glue == glue && session.job == job;
  });
  return found == sessions_.end() ? 0 : found->client;
}

std::optional<Visits::Session> Visits::take(GlueId glue, JobId job, SessionId id) {
  const auto found = std::ranges::find_if(sessions_, [&](const Session& session) {
    return session.id == id && session.glue == glue && session.job == job;
  });
  if (found == sessions_.end()) return std::nullopt;
  const Session session = *found;
  sessions_.erase(found);
  return session;
}

void Visits::ended(GlueId glue, const wire::SessionEnded& ended) {
  const auto session = take(glue, ended.job, ended.session);
  if (!session) return;
  actions_.note("event=session_ended session={} status={}", ended.session, quoted(ended.status.to_string()));
  if (session->client != 0) actions_.add(Answer{session->client, ended.status});
}

void Visits::failed(GlueId glue, const wire::SessionFailed& failed) {
  const auto session = take(glue, failed.job, failed.session);
  if (!session) return;
  actions_.note("event=session_failed session={} reason={}", failed.session, quoted(failed.message));
  if (session->client != 0) actions_.add(Refuse{session->client, failed.fault, failed.message});
}

void Visits::client_gone(ClientId client) {
  if (client == 0) return;
  std::erase_if(sessions_, [&](Session& session) {
    if (session.client != client) return false;
    if (session.what == wire::Enter::What::watch) return true;
    session.client = 0;
    actions_.add(CloseSession{session.glue, session.job, session.id});
    return false;
  });
}

void Visits::job_over(JobId job) {
  std::erase_if(sessions_, [&](const Session& session) {
    if (session.job != job) return false;
    if (session.client != 0 && session.what == wire::Enter::What::watch)
      actions_.add(Answer{session.client, ExitStatus::exited(0)});
    else if (session.client != 0)
      actions_.add(Refuse{session.client, wire::Fault::infrastructure, "the job has ended"});
    return true;
  });
}

}  // namespace glidepod::agent
