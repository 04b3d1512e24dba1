#include "provisioner/why/job_look.hpp"

#include <doctest/doctest.h>

#include "tests/condor/fake_runner.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;

namespace {

// A pool of access points that count (a, b) and one that does not (z); jobs by "schedd" and by "schedd past".
struct Scene {
  FakeRunner runner;
  std::map<std::string, std::string> jobs;
  std::map<std::string, std::string> failing;
  std::string judgement = "true false\n";
  std::vector<std::string> judged;
  HtcondorSettings settings;

  JobLook ask(const std::string& schedd = "") {
    settings.schedd_whitelist_regexp = "[ab]";
    runner.answer = [this](const Command& command) -> FakeRunner::Reply {
      if (command.argv[0] == "condor_status")
        return {
            "[\n{\"Name\": \"b\", \"AuthenticatedIdentity\": \"x\"}\n,\n{\"Name\": \"a\", "
            "\"AuthenticatedIdentity\": \"x\"}\n,\n{\"Name\": \"z\", \"AuthenticatedIdentity\": \"x\"}\n]\n",
            {}};
      const auto name = command.argv[2] + (command.argv[0] == "condor_history" ? " past" : "");
      if (failing.contains(name)) return {"", error("{}", failing[name])};
      const auto af = std::find(command.argv.begin(), command.argv.end(), "-af");
      if (af == command.argv.end()) return {jobs[name], {}};
      judged.assign(af + 1, command.argv.end());
      return {judgement, {}};
    };
    JobRules rules;
    rules.query =
        query_parts({.additional_requirements = "A > 1", .force_namespace_matching = NamespaceMatching::no},
                    "ns", CondorDemand::Namespace::matched);
    JobInquiry inquiry(runner, settings, rules);
    std::optional<JobLook> got;
    inquiry.ask("12.0", schedd, [&got](JobLook look) { got = std::move(look); });
    runner.run_all();
    REQUIRE(got);
    return std::move(*got);
  }
};

const char* const k_job = "[\n{\"JobStatus\": 1}\n]\n";

}  // namespace

TEST_CASE("job_look: one job, found in one queue, its clauses judged by HTCondor") {
  Scene scene;
  scene.jobs["b"] = k_job;
  const auto look = scene.ask();
  CHECK(look.where == JobLook::Where::queue);
  CHECK(look.schedds == std::vector<std::string>{"b"});
  CHECK(look.counts);
  CHECK(look.schedds_asked == 3);
  REQUIRE(look.clauses.size() == 2);
  CHECK(look.clauses[0].holds == true);
  CHECK(look.clauses[1].holds == false);
  CHECK(look.clauses[1].expression == "A > 1");
  CHECK(scene.judged == std::vector<std::string>{"(ifThenElse(JobUniverse == 5, true, false) =?= true)",
                                                 "(ifThenElse(A > 1, true, false) =?= true)"});
}

TEST_CASE("job_look: of two with its number the one that counts is meant") {
  Scene scene;
  scene.jobs["z"] = k_job;
  CHECK(!scene.ask().counts);
  scene.jobs["b"] = k_job;
  const auto look = scene.ask();
  CHECK(look.counts);
  CHECK(look.schedds == std::vector<std::string>{"b", "z"});
  CHECK(scene.ask("z").schedds == std::vector<std::string>{"z"});
}

TEST_CASE("job_look: what has left the queue is in the history, what is nowhere is nowhere") {
  Scene scene;
  scene.jobs["a past"] = "[\n{\"JobStatus\": 4}\n]\n";
  CHECK(scene.ask().where == JobLook::Where::history);
  scene.jobs.clear();
  scene.failing["b past"] = "condor_history: no answer";
  const auto look = scene.ask();
  CHECK(look.where == JobLook::Where::nowhere);
  CHECK(look.problems == std::vector<std::string>{"b: condor_history: no answer"});
}

TEST_CASE("job_look: without an answer to the clauses nothing is claimed of them") {
  for (const auto* answer : {"", "true maybe\n", "true\n", "true false true\n"}) {
    CAPTURE(answer);
    Scene scene;
    scene.jobs["a"] = k_job;
    scene.judgement = answer;
    const auto look = scene.ask();
    for (const auto& clause : look.clauses) CHECK(!clause.holds);
    CHECK(look.problems.size() == (*answer == '\0' ? 0 : 1));
  }
}

TEST_CASE("job_look: a schedd that the collector does not know") {
  Scene scene;
  CHECK(scene.ask("nobody").blind == "the collector has no schedd 'nobody'");
}
