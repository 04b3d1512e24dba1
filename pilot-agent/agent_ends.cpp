// What a job's starter is asked for at its end: to give it back softly, or to hold it.

#include <signal.h>

#include "lib/base/log.hpp"
#include "pilot-agent/agent.hpp"

namespace glidepod::agent {
namespace {
constexpr Milliseconds k_starter_ends{30'000};  // that has put its job on hold
}

bool Agent::asked_to_vacate(const Parent& starter, Vacating how) {
  const auto asked = vacate(starter, how);
  if (!asked)
    spdlog::warn("event=vacate_failed starter={} reason={}", starter.pid, quoted(asked.error().message()));
  return asked.ok();
}

void Agent::run(const Vacate& action) {
  const auto client = clients_.find(action.client);
  if (client == clients_.end()) return;
  const auto starter = find_parent(client->second.peer.pid);
  // Nobody else sends its signal to a job that no starter has.
  const bool inner = !client->second.instance.empty();
  if (!starter || starter.value().name != k_starter ||
      (inner && starter.value().uid != client->second.peer.uid))
    return core_.on_client_signal(action.client, SIGTERM, Loop::now());
  if (!asked_to_vacate(starter.value(), Vacating::softly)) return;
  spdlog::info("event=vacate starter={} reason=\"the payload container is being stopped\"",
               starter.value().pid);
}

void Agent::run(const Hold& action) {
  const auto client = clients_.find(action.client);
  if (client == clients_.end()) return;
  // The starter of a pilot job's own job is not ours to talk to.
  if (!client->second.instance.empty()) return run(Answer{action.client, action.status});
  hold(action, [this, action] { run(Answer{action.client, action.status}); });
}

void Agent::hold(const Hold& action, std::function<void()> unheld) {
  const auto begun = [&]() -> Result<void> {
    const Parent starter = TRY(find_parent(clients_.at(action.client).peer.pid));
    if (starter.name != k_starter) return error("no starter has this job");
    Child::Options options;
    options.argv = {settings_.hold_command, fmt::format("{}{}", settings_.starter_address, starter.pid),
                    std::to_string(action.code), std::to_string(action.subcode), action.reason};
    Child holder = TRY(Child::spawn(options));
    TRY(loop_.watch(holder.pidfd().get(), EPOLLIN,
                    [this, id = action.client, unheld](std::uint32_t) { on_held(id, unheld); }));
    holders_.emplace(action.client, std::move(holder));
    return {};
  }();
  if (begun) return;
  spdlog::info("event=not_held reason={}", quoted(begun.error().message()));
  unheld();
}

// Its starter ends it now; one that does not is told how the job ended.
void Agent::on_held(ClientId id, const std::function<void()>& told_unheld) {
  const auto unheld = told_unheld;  // it goes with the watch
  auto holder = holders_.extract(id);
  loop_.forget(holder.mapped().pidfd().get());
  const auto ended = holder.mapped().wait();
  const auto client = clients_.find(id);
  const bool held = ended && ended.value().status.success();
  if (!held)
    spdlog::warn("event=not_held reason={}",
                 quoted(ended ? ended.value().status.to_string() : ended.error().message()));
  if (client == clients_.end()) return;
  if (!held) return unheld();
  client->second.vacate_timer = loop_.after(k_starter_ends, unheld);
}

}  // namespace glidepod::agent
