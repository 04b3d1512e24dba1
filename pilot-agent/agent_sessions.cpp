// The driver's part of sessions beside a job (condor_ssh_to_job): who asks, and the descriptors.

#include "lib/base/log.hpp"
#include "pilot-agent/agent.hpp"

namespace glidepod::agent {

namespace {
std::vector<int> numbers(const std::vector<Fd>& fds) {
  std::vector<int> result;
  result.reserve(fds.size());
  for (const Fd& fd : fds) result.push_back(fd.get());
  return result;
}
}  // namespace

// An Error is the caller's fault.
Result<void> Agent::take_enter(ClientId client, wire::Frame frame) {
  ClientLink& link = clients_.at(client);
  auto enter = TRY(frame.decode<wire::Enter>());
  TRY(check_protocol(enter.protocol));
  const bool needs_fds = enter.what == wire::Enter::What::session && !enter.request.terminal;
  if (frame.fds.size() != (needs_fds ? 3U : 0U))
    return error("the request came without its standard streams");
  TRY(judge(link, frame.fds, enter.sandbox));
  link.fds = std::move(frame.fds);
  link.session = std::move(enter.request);
  core_.on_enter({client, link.peer.uid, std::move(enter.sandbox), enter.what});
  return {};
}

bool Agent::take_session_frame(GlueId glue, const wire::Frame& frame) {
  if (frame.type == wire::Type::session_started) {
    const auto started = frame.decode<wire::SessionStarted>();
    if (!started) return false;
    const auto client = clients_.find(core_.visits().client_of(glue, started->job, started->session));
    // A client that cannot be told is gone, which reading tells.
    if (client != clients_.end()) (void)client->second.channel->send(wire::Entered{}, numbers(frame.fds));
    return true;
  }
  if (frame.type == wire::Type::session_ended) {
    auto ended = frame.decode<wire::SessionEnded>();
    if (ended) core_.visits().ended(glue, ended.value());
    return ended.ok();
  }
  if (frame.type == wire::Type::session_failed) {
    auto failed = frame.decode<wire::SessionFailed>();
    if (failed) core_.visits().failed(glue, failed.value());
    return failed.ok();
  }
  return false;
}

void Agent::run(const OpenSession& action) {
  const auto client = clients_.find(action.client);
  const auto glue = glues_.find(action.glue);
  // Either's end is told to the core on its own.
  if (client == clients_.end() || !client->second.session || glue == glues_.end()) return;
  const wire::OpenSession open{action.job, action.session,
                               *std::exchange(client->second.session, std::nullopt)};
  const auto sent = glue->second.channel->send(open, numbers(client->second.fds));
  client->second.fds.clear();
  if (!sent) close_glue(action.glue, sent.error().in("open a session"));
}

void Agent::run(const CloseSession& action) {
  const auto glue = glues_.find(action.glue);
  if (glue != glues_.end()) (void)glue->second.channel->send(wire::CloseSession{action.job, action.session});
}

void Agent::run(const Refuse& action) {
  tell(action.client, action.fault, action.message);
}

}  // namespace glidepod::agent
