#include "lib/condor/pool.hpp"

#include <doctest/doctest.h>

#include "tests/condor/fake_runner.hpp"

using namespace glidepod;
using namespace glidepod::condor;

namespace {

struct Log {
  std::vector<std::string> lines;
  Pool::Answer answer() {
    return {[this](const Ad& ad) { lines.push_back("ad " + ad.evaluate("Name").to_string()); },
            [this](const std::string& why) { lines.push_back("bad " + why); },
            [this](const Result<void>& end) { lines.push_back(end.ok() ? "ok" : end.error().message()); }};
  }
};

}  // namespace

TEST_CASE("pool: the command lines") {
  FakeRunner runner;
  runner.answer = [](const Command&) { return FakeRunner::Reply{}; };
  Log log;
  Pool here(runner, "", Milliseconds(1));
  here.schedds(log.answer());
  Pool there(runner, "cm:9618", Milliseconds(1));
  there.job_groups("ap1@", "JobStatus == 1", {"JobStatus", "RequestCpus"}, log.answer());
  there.slots("true", {"Name", "State"}, log.answer());
  using Argv = std::vector<std::string>;
  CHECK(runner.commands[0] ==
        Argv{"condor_status", "-schedd", "-json", "-attributes", "Name,AuthenticatedIdentity,TotalIdleJobs"});
  CHECK(runner.commands[1] == Argv{"condor_q", "-pool", "cm:9618", "-name", "ap1@", "-allusers", "-group-by",
                                   "-constraint", "JobStatus == 1", "-json", "-attributes",
                                   "JobStatus,RequestCpus"});
  CHECK(runner.commands[2] == Argv{"condor_status", "-pool", "cm:9618", "-constraint", "true", "-json",
                                   "-attributes", "Name,State"});
  there.cycles(log.answer());
  there.slots("true", {}, log.answer());
  there.advertise_slots("Name = \"a\"\n\n", [](const Result<void>&) {});
  CHECK(runner.commands[3] == Argv{"condor_status", "-pool", "cm:9618", "-subsystem", "accounting", "-json",
                                   "-attributes", "LastUpdate,LastHeardFrom"});
  CHECK(runner.commands[4] == Argv{"condor_status", "-pool", "cm:9618", "-constraint", "true", "-json"});
  CHECK(runner.commands[5] ==
        Argv{"condor_advertise", "-pool", "cm:9618", "-multiple", "UPDATE_STARTD_AD", "-"});
  runner.commands.resize(3);
  there.job("ap1@", "12.0", log.answer());
  there.past_job("ap1@", "12.0", log.answer());
  CHECK(runner.commands[3] ==
        Argv{"condor_q", "-pool", "cm:9618", "-name", "ap1@", "-allusers", "12.0", "-json"});
  CHECK(runner.commands[4].front() == "condor_history");
  CHECK(runner.commands[4][5] == "12.0");
  there.accounting(log.answer());
  CHECK(runner.commands[5][4] == "accounting");
  CHECK(runner.commands[5].back().find("Priority,PriorityFactor") != std::string::npos);
}

TEST_CASE("pool: of several collectors one is asked, the next where it does not answer, and then that one") {
  FakeRunner runner;
  std::string down = "a";
  runner.answer = [&down](const Command& command) {
    if (command.argv[2] == down) return FakeRunner::Reply{"", error("condor_status: exit code 1")};
    return FakeRunner::Reply{"{ \"Name\": \"x\" }", {}};
  };
  Log log;
  Pool pool(runner, "a, b", Milliseconds(1));
  pool.schedds(log.answer());
  runner.run_all();
  CHECK(log.lines == std::vector<std::string>{"ad x", "ok"});
  CHECK(runner.commands[1][2] == "b");
  pool.job("ap", "1.0", log.answer());
  CHECK(runner.commands[2][2] == "b");
  down = "b";
  pool.slots("true", {"Name"}, log.answer());
  runner.run_all();
  CHECK(runner.commands[3][2] == "b");
  CHECK(runner.commands[4][2] == "a");
  log.lines.clear();
  runner.answer = [](const Command&) { return FakeRunner::Reply{"", error("condor_status: exit code 1")}; };
  pool.schedds(log.answer());
  runner.run_all();
  // Once each; the last one is named.
  CHECK(runner.commands.size() == 7);
  CHECK(log.lines == std::vector<std::string>{"b: condor_status: exit code 1"});
}

TEST_CASE("pool: a collector whose answer breaks off is not followed by another: ads would come twice") {
  FakeRunner runner;
  runner.answer = [](const Command&) {
    return FakeRunner::Reply{"{ \"Name\": \"x\" }", error("condor_status: exit code 1")};
  };
  Log log;
  Pool pool(runner, "a,b", Milliseconds(1));
  pool.schedds(log.answer());
  runner.run_all();
  CHECK(log.lines == std::vector<std::string>{"ad x", "a: condor_status: exit code 1"});
}

TEST_CASE("pool: ads, then the end, a failed command is the end's error") {
  FakeRunner runner;
  runner.answer = [](const Command& command) {
    if (command.argv[0] == "condor_q")
      return FakeRunner::Reply{"{ \"Name\": \"x\" }", error("condor_q: exit code 1")};
    return FakeRunner::Reply{"[\n{ \"Name\": \"a\" }\n,\n{ , }\n,\n{ \"Name\": \"b\" }\n]\n", {}};
  };
  Log log;
  Pool pool(runner, "", Milliseconds(1));
  pool.schedds(log.answer());
  pool.job_groups("ap", "true", {"JobStatus"}, log.answer());
  runner.run_all();
  REQUIRE(log.lines.size() == 6);
  CHECK(log.lines[0] == "ad a");
  CHECK(log.lines[1].starts_with("bad not JSON"));
  CHECK(log.lines[2] == "ad b");
  CHECK(log.lines[3] == "ok");
  CHECK(log.lines[4] == "ad x");
  CHECK(log.lines[5] == "condor_q: exit code 1");
}
