// Visits by themselves; test_core_sessions.cpp has who is let in.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/visits.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

using VisitWhat = wire::Enter::What;

Container container_with(JobId job, GlueId glue) {
  Container container;
  container.name = "payload-0";
  container.glue = glue;
  Running running;
  running.job.id = job;
  container.state = running;
  return container;
}

Visit visit_of(ClientId client, VisitWhat what = VisitWhat::session) {
  return {client, 20001, "/sandbox", what};
}

}  // namespace

TEST_CASE("visits: a session is opened, and ends once, by the word of its own glue about its own job") {
  Actions actions;
  Visits visits(actions);
  visits.open(visit_of(7), container_with(3, 1));
  const auto opened = taken<OpenSession>(actions);
  REQUIRE(opened.size() == 1);
  const SessionId session = opened.front().session;
  CHECK(visits.client_of(1, 3, session) == 7);
  CHECK(visits.client_of(2, 3, session) == 0);
  CHECK(visits.client_of(1, 4, session) == 0);
  CHECK(visits.client_of(1, 3, session + 1) == 0);
  visits.ended(2, {3, session, ExitStatus::exited(5)});
  visits.failed(1, {4, session, wire::Fault::user, "no"});
  CHECK(actions.take().empty());
  SUBCASE("well") {
    visits.ended(1, {3, session, ExitStatus::exited(5)});
    const auto answers = taken<Answer>(actions);
    REQUIRE(answers.size() == 1);
    CHECK(answers.front().client == 7);
    CHECK(answers.front().status == ExitStatus::exited(5));
  }
  SUBCASE("not begun") {
    visits.failed(1, {3, session, wire::Fault::user, "no"});
    const auto refused = taken<Refuse>(actions);
    REQUIRE(refused.size() == 1);
    CHECK(refused.front().message == "no");
  }
  visits.ended(1, {3, session, ExitStatus::exited(5)});
  visits.job_over(3);
  CHECK(actions.take().empty());
}

TEST_CASE("visits: whoever leaves has the session closed, and is told nothing any more") {
  Actions actions;
  Visits visits(actions);
  visits.open(visit_of(7), container_with(3, 1));
  visits.open(visit_of(8, VisitWhat::watch), container_with(3, 1));
  actions.take();
  visits.client_gone(0);
  visits.client_gone(9);
  CHECK(actions.take().empty());
  visits.client_gone(7);
  visits.client_gone(8);
  const auto closed = taken<CloseSession>(actions);
  REQUIRE(closed.size() == 1);
  CHECK(closed.front().glue == 1);
  CHECK(closed.front().job == 3);
  CHECK(visits.client_of(1, 3, closed.front().session) == 0);
  visits.ended(1, {3, closed.front().session, ExitStatus::exited(0)});
  CHECK(taken<Note>(actions).size() == 1);
  visits.job_over(3);
  CHECK(actions.take().empty());
}

TEST_CASE("visits: the job's end is the end of its sessions and what its watchers wait for") {
  Actions actions;
  Visits visits(actions);
  visits.open(visit_of(7), container_with(3, 1));
  visits.open(visit_of(8, VisitWhat::watch), container_with(3, 1));
  visits.open(visit_of(9), container_with(4, 2));
  actions.take();
  visits.job_over(3);
  const auto all = actions.take();
  REQUIRE(all.size() == 2);
  CHECK(std::get<Refuse>(all[0]).client == 7);
  CHECK(std::get<Answer>(all[1]).client == 8);
  CHECK(std::get<Answer>(all[1]).status == ExitStatus::exited(0));
  visits.refuse(visit_of(7), "not now");
  CHECK(taken<Refuse>(actions).size() == 1);
}
