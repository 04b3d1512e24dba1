#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_sandbox = "/glidepod/scratch/dir_1";

// A running job of user 20001, or of another.
struct Sessions : Harness {
  explicit Sessions(int count = 1) : Harness(count) {}
  ClientId run_job(int i = 0, uid_t uid = 20001, const std::string& sandbox = k_sandbox) {
    Request request;
    request.client = ++last_id;
    request.asked = Image(k_image_a);
    request.owner = "alice";
    request.uid = uid;
    request.job = "1.0";
    request.sandbox = sandbox;
    core.on_bind(request, now);
    take();
    switch_to(i, k_image_a, k_digest_a);
    return request.client;
  }
  ClientId enter(uid_t uid = 20001, const std::string& sandbox = k_sandbox,
                 wire::Enter::What what = wire::Enter::What::session) {
    core.on_enter({++last_id, uid, sandbox, what});
    take();
    return last_id;
  }
  void session_ended(SessionId session, ExitStatus status, int i = 0) {
    core.visits().ended(glue[i], {last<agent::Launch>().job, session, status});
    take();
  }
};

}  // namespace

TEST_CASE("sessions: the job's own user is let in, and told how it ended") {
  Sessions h;
  h.run_job();
  const ClientId visitor = h.enter();
  const auto open = h.last<OpenSession>();
  CHECK(open.client == visitor);
  CHECK(open.glue == h.glue[0]);
  CHECK(open.job == h.last<agent::Launch>().job);
  CHECK(h.core.visits().client_of(h.glue[0], open.job, open.session) == visitor);
  h.session_ended(open.session, ExitStatus::signaled(11));
  CHECK(h.last<Answer>().client == visitor);
  CHECK(h.last<Answer>().status == ExitStatus::signaled(11));
  CHECK(h.count<Answer>() == 1);  // the job goes on
  CHECK(h.state() == State::running);
  h.end_job(0, ExitStatus::exited(3));
  CHECK(h.last<Answer>().status == ExitStatus::exited(3));
  CHECK(h.count<Refuse>() == 0);
}

TEST_CASE("sessions: nobody else is let in, nor anywhere else") {
  Sessions h(2);
  h.run_job();
  h.run_job(1, 20002, "/glidepod/scratch/dir_2");
  SUBCASE("another slot's user") {
    h.enter(20002);
  }
  SUBCASE("root") {
    h.enter(0);
  }
  SUBCASE("the user of nothing") {
    h.enter(20003);
  }
  SUBCASE("into another's sandbox") {
    h.enter(20001, "/glidepod/scratch/dir_2");
  }
  SUBCASE("into no sandbox") {
    h.enter(20001, "");
  }
  SUBCASE("only to watch") {
    h.enter(20002, k_sandbox, wire::Enter::What::watch);
  }
  CHECK(h.count<OpenSession>() == 0);
  CHECK(h.last<Refuse>().client == h.last_id);
}

TEST_CASE("sessions: there is none before the job, and none after") {
  Sessions h;
  h.enter();
  CHECK(h.count<Refuse>() == 1);
  const ClientId client = h.run_job();
  SUBCASE("ended") {
    h.end_job();
  }
  SUBCASE("being killed") {
    h.core.on_client_gone(client, h.now);
  }
  SUBCASE("its container stopped from outside") {
    h.core.on_goodbye(h.glue[0], h.now);
  }
  SUBCASE("its glue lost") {
    h.lose();
  }
  SUBCASE("the pilot ends") {
    h.core.finish(h.now);
  }
  h.take();
  h.enter();
  CHECK(h.count<Refuse>() == 2);
  CHECK(h.count<OpenSession>() == 0);
}

TEST_CASE("sessions: a probe of the container runtime is no job to enter") {
  Sessions h;
  Request probe;
  probe.client = ++h.last_id;
  probe.any_image = true;
  probe.uid = 20001;
  probe.sandbox = k_sandbox;
  h.core.on_bind(probe, h.now);
  h.take();
  REQUIRE(h.count<agent::Launch>() == 1);
  h.enter();
  CHECK(h.count<OpenSession>() == 0);
}

TEST_CASE("sessions: the job's end is theirs, whatever it was") {
  Sessions h;
  h.run_job();
  const ClientId first = h.enter(), second = h.enter();
  const ClientId watcher = h.enter(20001, k_sandbox, wire::Enter::What::watch);
  CHECK(h.count<OpenSession>() == 2);  // watching opens nothing
  SUBCASE("its own") {
    h.end_job();
  }
  SUBCASE("with its glue") {
    h.lose();
  }
  SUBCASE("before it began") {
    h.core.on_launch_failed(h.glue[0], {h.last<agent::Launch>().job, wire::Fault::user, "no"}, h.now);
    h.take();
  }
  std::map<ClientId, int> told;
  bool watcher_told = false;
  for (const Action& action : h.all) {
    if (const auto* refuse = std::get_if<Refuse>(&action)) ++told[refuse->client];
    if (const auto* answer = std::get_if<Answer>(&action)) watcher_told |= answer->client == watcher;
  }
  CHECK(told == std::map<ClientId, int>{{first, 1}, {second, 1}});
  CHECK(watcher_told);
  CHECK(h.count<CloseSession>() == 0);  // glue has ended them
}

TEST_CASE("sessions: whoever leaves ends theirs and no other") {
  Sessions h;
  h.run_job();
  const ClientId leaver = h.enter();
  const SessionId left = h.last<OpenSession>().session;
  const ClientId stayer = h.enter();
  h.core.on_client_gone(leaver, h.now);
  h.take();
  CHECK(h.last<CloseSession>().session == left);
  h.core.on_client_gone(0, h.now);  // nobody
  h.take();
  CHECK(h.count<CloseSession>() == 1);
  CHECK(h.count<SignalJob>() == 0);
  CHECK(h.state() == State::running);
  CHECK(h.core.visits().client_of(h.glue[0], h.last<agent::Launch>().job, left) == 0);
  h.session_ended(left, ExitStatus::signaled(9));
  CHECK(h.count<Answer>() == 0);
  h.core.on_client_gone(stayer, h.now);
  h.take();
  CHECK(h.count<CloseSession>() == 2);
  h.core.on_client_gone(h.enter(20001, k_sandbox, wire::Enter::What::watch), h.now);
  h.take();
  CHECK(h.count<CloseSession>() == 2);
  // Who has left is told nothing any more.
  h.end_job();
  CHECK(h.count<Answer>() == 1);
  CHECK(h.count<Refuse>() == 0);
}

TEST_CASE("sessions: what glue cannot start is told, and the job goes on") {
  Sessions h;
  h.run_job();
  const ClientId visitor = h.enter();
  const auto open = h.last<OpenSession>();
  h.core.visits().failed(h.glue[0], {open.job, open.session, wire::Fault::user, "no shell"});
  h.take();
  CHECK(h.last<Refuse>().client == visitor);
  CHECK(h.last<Refuse>().message == "no shell");
  CHECK(h.state() == State::running);
  // Of a session, a job or a glue that nobody knows: nothing.
  h.core.visits().ended(h.glue[0], {open.job, open.session, ExitStatus::exited(0)});
  h.core.visits().ended(h.glue[0], {open.job + 1, open.session, ExitStatus::exited(0)});
  h.core.visits().ended(77, {open.job, open.session, ExitStatus::exited(0)});
  h.core.visits().failed(h.glue[0], {open.job, open.session, wire::Fault::user, "no shell"});
  h.take();
  CHECK(h.count<Refuse>() == 1);
  CHECK(h.count<Answer>() == 0);
}

TEST_CASE("sessions: a visitor is told once, also where the job's end is still open") {
  Sessions h;
  h.run_job();
  h.enter();
  h.end_job(0, ExitStatus::signaled(15));
  REQUIRE(h.state() == State::draining);
  CHECK(h.count<Refuse>() == 1);
  h.goodbye();
  CHECK(h.count<Refuse>() == 1);
}
