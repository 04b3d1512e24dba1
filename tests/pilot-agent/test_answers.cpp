// What clients are told, by itself; test_core_ends.cpp and test_core_bind.cpp have what the core makes of it.
#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "pilot-agent/core/answers.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

constexpr Time k_told_at{1000s};

Request asked_by(ClientId client, wire::Verb verb = wire::Verb::exec) {
  Request request;
  request.client = client;
  request.verb = verb;
  request.job = "1.0";
  request.memory_mib = 64;
  return request;
}

template <typename T>
const T* only(const std::vector<Action>& actions) {
  for (const Action& action : actions)
    if (const T* one = std::get_if<T>(&action)) return one;
  return nullptr;
}

}  // namespace

TEST_CASE("answers: a failure is counted by whose fault it is, and nobody is told who is gone") {
  Actions actions;
  Answers answers(actions);
  answers.fail(asked_by(7), wire::Fault::user, "no such image");
  auto all = actions.take();
  REQUIRE(only<Fail>(all) != nullptr);
  CHECK(only<Fail>(all)->client == 7);
  CHECK(only<Fail>(all)->of_job);
  CHECK(only<Fail>(all)->fault == wire::Fault::user);
  CHECK(only<Fail>(all)->message == "no such image");
  CHECK(only<Note>(all)->text.starts_with("event=bind_failed job=1.0 "));
  answers.fail(asked_by(0), wire::Fault::infrastructure, "no node");
  all = actions.take();
  CHECK(only<Fail>(all) == nullptr);
  CHECK(only<Note>(all) != nullptr);
  Request probe = asked_by(8);
  probe.any_image = true;
  answers.fail(probe, wire::Fault::infrastructure, "no node");
  CHECK_FALSE(only<Fail>(actions.take())->of_job);
  CHECK(answers.binds().user == 1);
  CHECK(answers.binds().infrastructure == 1);
}

TEST_CASE("answers: a doubt is told of a test alone, and holds the job once it has failed often enough") {
  Actions actions;
  Answers answers(actions);
  Doubts::Doubt doubt;
  doubt.first = k_told_at - 90s;
  doubt.counted = Doubts::k_enough - 1;
  answers.fail_in_doubt(asked_by(7, wire::Verb::test), doubt, "odd", true, k_told_at);
  CHECK(only<Fail>(actions.take())->fault == wire::Fault::doubt);
  CHECK(answers.binds().doubt == 1);
  CHECK(answers.binds().user + answers.binds().infrastructure == 0);
  answers.fail_in_doubt(asked_by(7), doubt, "odd", true, k_told_at);
  CHECK(only<Fail>(actions.take())->fault == wire::Fault::infrastructure);
  doubt.counted = Doubts::k_enough;
  answers.fail_in_doubt(asked_by(7), doubt, "odd", false, k_told_at);
  CHECK(only<Fail>(actions.take())->fault == wire::Fault::infrastructure);
  answers.fail_in_doubt(asked_by(7), doubt, "odd", true, k_told_at);
  const auto all = actions.take();
  CHECK(only<Fail>(all)->fault == wire::Fault::user);
  CHECK(only<Fail>(all)->message == "odd (3 times in 2 minutes on this node)");
}

TEST_CASE("answers: a job's end is told with what it ran in, and a shortage is remembered") {
  Actions actions;
  Answers answers(actions);
  Job job;
  job.request = asked_by(7);
  job.container = "payload-0";
  job.how = "warm";
  job.end.exited = wire::Exited{1, ExitStatus::exited(3), 0, 0, 0, 0};
  job.end.exited_at = k_told_at;
  CHECK(verdict_on(job, k_told_at).kind == Verdict::Kind::ended);
  answers.tell_end(job, k_told_at);
  auto all = actions.take();
  REQUIRE(only<Answer>(all) != nullptr);
  CHECK(only<Answer>(all)->status == ExitStatus::exited(3));
  CHECK(only<Answer>(all)->ran.container == "payload-0");
  CHECK(only<Answer>(all)->ran.how == "warm");
  CHECK(answers.shortage().empty());
  EndFacts facts;
  facts.gone_at = k_told_at;
  facts.container_by = k_told_at;
  answers.tell_end(job.request, facts, k_told_at);
  CHECK(only<Fail>(actions.take())->fault == wire::Fault::infrastructure);
  facts.container = kube::Termination{.reason = "OOMKilled", .exit_code = 137};
  answers.tell_end(job.request, facts, k_told_at);
  all = actions.take();
  REQUIRE(only<Hold>(all) != nullptr);
  CHECK(only<Hold>(all)->subcode == k_subcode_memory);
  CHECK(only<Note>(all)->text.starts_with("event=out_of_memory"));
  CHECK(answers.shortage() == "job 1.0: " + only<Hold>(all)->reason);
  answers.tell_end(asked_by(0), facts, k_told_at);
  CHECK(actions.take().empty());
}

TEST_CASE("answers: a job whose glue is gone is told of once it is known how it ended, or will not be") {
  Actions actions;
  Answers answers(actions);
  Job job;
  job.request = asked_by(7);
  job.end.gone_at = k_told_at;
  job.end.container_by = k_told_at + 10s;
  answers.lost_jobs.add(Container{}, job);
  answers.tell_lost(answers.lost_jobs.take_due(k_told_at + 9s), k_told_at + 9s);
  CHECK(actions.take().empty());
  answers.tell_lost(answers.lost_jobs.take_due(k_told_at + 10s), k_told_at + 10s);
  const auto all = actions.take();
  REQUIRE(only<Fail>(all) != nullptr);
  CHECK(only<Fail>(all)->client == 7);
  CHECK(only<Fail>(all)->fault == wire::Fault::infrastructure);
  CHECK(answers.lost_jobs.empty());
}
