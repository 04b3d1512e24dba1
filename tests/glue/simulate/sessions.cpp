#include "tests/glue/simulate/sessions.hpp"

#include <signal.h>

#include <utility>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {
// Its supervisor starts soon, or fails.
constexpr auto k_soon = std::chrono::seconds(2);
}  // namespace

void Sessions::asked(const wire::OpenSession& open, bool refused) {
  Session& session = all_[open.session];
  if (session.over) session = {};
  ++session.asks;
  session.refused = refused || session.asks > session.answers + 1 || session.started_told;
  session.asked_at = world_.now();
}

void Sessions::closing(std::uint64_t id, bool of_this_job) {
  const auto found = all_.find(id);
  if (found == all_.end() || !of_this_job || !found->second.opened || found->second.over) return;
  const Process* supervisor = world_.tree.find(found->second.pid, found->second.start);
  found->second.may_close = true;
  found->second.closing = supervisor != nullptr && supervisor->state != Process::State::zombie;
}

void Sessions::opens(std::uint64_t id, const Process& supervisor) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;  // who asked is gone
  Session& session = found->second;
  world_.check(!session.refused, "no session is opened beside no job, or twice");
  session.opened = true;
  session.pid = supervisor.pid;
  session.start = supervisor.start;
}

void Sessions::fails(std::uint64_t id) {
  if (all_.contains(id)) all_[id].failed = true;
}

void Sessions::ends(std::uint64_t id, ExitStatus status) {
  if (all_.contains(id)) all_[id].status = status;
}

bool Sessions::answered(std::uint64_t id) const {
  const auto found = all_.find(id);
  return found != all_.end() && found->second.answers == found->second.asks;
}

void Sessions::struck(const Process& supervisor) {
  for (auto& [id, session] : all_) {
    if (session.pid != supervisor.pid || session.start != supervisor.start) continue;
    // That of a session that could not be watched is told so, too.
    world_.check(session.may_close || session.answers == 0, "a session is ended when that is asked for");
    session.closing = false;
  }
}

Sessions::Session& Sessions::of(std::uint64_t id) {
  const auto found = all_.find(id);
  world_.check(found != all_.end(), "what is said of a session is of one that was asked for");
  return found->second;
}

void Sessions::told(const wire::SessionStarted& started) {
  Session& session = of(started.session);
  world_.check(++session.answers <= session.asks && !session.started_told, "a session starts once");
  world_.check(session.opened && !session.failed, "a session that is said to start has done so");
  session.started_told = true;
}

void Sessions::told(const wire::SessionEnded& ended) {
  Session& session = of(ended.session);
  world_.check(session.opened && !std::exchange(session.over, true), "a session ends once");
  world_.check(!session.failed, "a session that could not start does not end");
  if (!session.started_told) ++session.answers;  // it was ended before that
  world_.check(ended.status == session.status.value_or(ExitStatus::signaled(SIGKILL)),
               "a session's end is told as it was");
}

void Sessions::told(const wire::SessionFailed& failed) {
  Session& session = of(failed.session);
  world_.check(++session.answers <= session.asks, "a session fails once");
  world_.check(session.refused || failed.message.find("exists") == std::string::npos,
               "a number is free again when its session is over");
  world_.check(failed.fault == (session.failed ? wire::Fault::user : wire::Fault::infrastructure),
               "it is told whose fault it is that a session fails");
  if (!session.started_told && session.answers == session.asks) session.over = true;
}

void Sessions::check(bool due) const {
  if (!due) return;
  for (const auto& [id, session] : all_) {
    world_.check(!session.closing, "a session that is closed is told to end");
    world_.check(session.answers == session.asks || world_.now() - session.asked_at < k_soon,
                 "who asks for a session is answered");
  }
}

}  // namespace glidepod::glue::simulate
