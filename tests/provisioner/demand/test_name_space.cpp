#include "provisioner/demand/name_space.hpp"

#include <doctest/doctest.h>

#include <regex>

#include "lib/base/file.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/demand/demand.hpp"
#include "tests/condor/fake_runner.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using condor::Command;
using condor::FakeRunner;

TEST_CASE("namespace: patterns are taken that match fast and stay within themselves") {
  const std::regex of_htcondor(k_namespace_patterns);
  const auto taken = [&](const std::string& pattern) {
    const bool here = is_namespace_pattern(pattern);
    // What HTCondor is told to take is the same.
    CHECK(std::regex_search(pattern, of_htcondor) == here);
    return here;
  };
  for (const auto* good :
       {"ns", "osg-ligo", ".*", "osg-.*", "a|b", "a*b+c?", "|", "cms-ucsd-t2|cms-.*", ".*-.*x.*"}) {
    CAPTURE(good);
    CHECK(taken(good));
    CHECK_NOTHROW(std::regex{good});
  }
  for (const auto* bad : {"", "*ns", "a**", "a++", "|*", "(a+)+", "(a|a)*", "[a-z]+", "a{2}", "x)|(?:.*",
                          "^ns$", "\\Qns", "ns\n", "(?i)ns", "NS", "a*a*a*a*", "a b", "ns\"", "#"}) {
    CAPTURE(bad);
    CHECK_FALSE(taken(bad));
  }
  CHECK(taken(std::string(200, 'a')));
  CHECK_FALSE(taken(std::string(201, 'a')));
}

TEST_CASE("namespace: what a job must meet") {
  CHECK(asks_for_namespace("ns", NamespaceMatching::name) == R"(RequestK8SNamespace =?= "ns")");
  CHECK(asks_or_refused("ns", NamespaceMatching::name) == R"(RequestK8SNamespace =?= "ns")");
  const auto asks = asks_for_namespace("ns", NamespaceMatching::pattern);
  CHECK(
      asks ==
      std::string(R"(ifThenElse(regexp(")") + k_namespace_patterns +
          R"(", RequestK8SNamespace) =?= true, regexp(strcat("^(?:", RequestK8SNamespace, ")$"), "ns"), false) =?= true)");
  CHECK(condor::referenced_attributes(asks_or_refused("ns", NamespaceMatching::pattern)).value() ==
        std::vector<std::string>{"RequestK8SNamespace"});
}

TEST_CASE("namespace: START of our pilots takes the same patterns, in the same way") {
  const auto start = read_file(GLIDEPOD_PILOT_CONFIG "/60-start.config").value();
  CHECK(start.find(std::string("\nGLIDEPOD_NAMESPACE_PATTERNS = ") + k_namespace_patterns + "\n") !=
        std::string::npos);
  CHECK(start.find(
            R"x(ifThenElse(regexp("$(GLIDEPOD_NAMESPACE_PATTERNS)", TARGET.RequestK8SNamespace) =?= true, \
          regexp(strcat("^(?:", TARGET.RequestK8SNamespace, ")$"), MY.K8SNamespace), false) =?= true))x") !=
        std::string::npos);
}

TEST_CASE("namespace: a pattern that is refused is told and costs only its own jobs") {
  FakeRunner runner;
  std::string asked;
  runner.answer = [&asked](const Command& command) -> FakeRunner::Reply {
    if (command.argv[0] != "condor_q")
      return {"[\n{\"Name\": \"a\", \"AuthenticatedIdentity\": \"x\"}\n]\n", {}};
    asked = fmt::format("{}", fmt::join(command.argv, " "));
    return {R"([
{"JobCount": 3, "Owner": "alice", "RequestK8SNamespace": "n.*"}
,
{"JobCount": 1000, "Owner": "mallory", "RequestK8SNamespace": "(a+)+$"}
,
{"JobCount": 1, "Owner": "eve", "RequestK8SNamespace": 5}
,
{"JobCount": 2, "Owner": "bob", "RequestK8SNamespace": "/Expr(strcat(\"n\", Suffix))/"}
]
)",
            {}};
  };
  const auto fetch = [&runner](NamespaceMatching matching) {
    CondorDemand source(runner, {.force_namespace_matching = matching}, {}, "ns",
                        CondorDemand::Namespace::matched);
    Demand got;
    source.fetch([&got](Demand demand) { got = std::move(demand); });
    runner.run_all();
    return got;
  };
  const auto demand = fetch(NamespaceMatching::pattern);
  CHECK_FALSE(demand.blind);
  CHECK(demand.groups.at(Group{}).idle == 3 + 2);
  CHECK(demand.bad_ads == 2);
  REQUIRE(demand.problems.size() == 2);
  CHECK(demand.problems[0] ==
        "a: bad ad: RequestK8SNamespace of mallory is refused: '(a+)+$' is no pattern of a-z, 0-9, '-', '.', "
        "'|' and at most three of '*', '+', '?'");
  CHECK(asked.find(" || (RequestK8SNamespace =!= undefined && (regexp(") != std::string::npos);
  CHECK(fetch(NamespaceMatching::name).groups.at(Group{}).idle == 1006);
  CHECK(asked.find("regexp") == std::string::npos);
}
