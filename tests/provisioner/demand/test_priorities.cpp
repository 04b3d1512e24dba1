#include "provisioner/demand/priorities.hpp"

#include <doctest/doctest.h>

#include "lib/condor/ad_stream.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

Priorities read(std::initializer_list<const char*> ads) {
  PrioritiesReader reader;
  for (const auto* ad : ads) reader.read(condor::ad_from_json(ad).value());
  return reader.result();
}

}  // namespace

TEST_CASE("priorities: owners have those of their names in the pool, newcomers the best of the usual kind") {
  const auto got = read({
      R"({"Name": "alice@x", "Priority": 1500.5, "PriorityFactor": 1000.0, "AccountingGroup": "<none>"})",
      R"({"Name": "bob@x", "Priority": 500, "PriorityFactor": 1000, "AccountingGroup": "<none>"})",
      R"({"Name": "jane.doe@x", "Priority": 0.5, "PriorityFactor": 1.0, "AccountingGroup": "<none>"})",
      R"({"Name": "physics.eve@x", "Priority": 700.0, "PriorityFactor": 1000.0, "AccountingGroup": "physics"})",
      R"({"Name": "eve@y", "Priority": 600.0, "PriorityFactor": 1000.0, "AccountingGroup": "<none>"})",
      R"({"Name": "bad@x", "Priority": 0})",
      R"({"Name": "worse@x", "Priority": "high"})",
      R"({})",
  });
  CHECK(!got.unknown);
  CHECK(got.of ==
        std::map<std::string, double>{{"alice", 1500.5}, {"bob", 500}, {"jane.doe", 0.5}, {"eve", 600}});
  CHECK(got.of_owner("nobody") == 500);
  CHECK(got.of_owner("alice") == 1500.5);
  CHECK(got.group_of.empty());
}

TEST_CASE("priorities: a fixed quota without surplus limits those who are only in that group") {
  const auto* quota = R"({"Name": "physics", "AccountingGroup": "<none>", "ConfigQuota": 100.0,
                          "SurplusPolicy": "no", "WeightedResourcesUsed": 30.5})";
  const auto* alice = R"({"Name": "physics.alice@x", "AccountingGroup": "physics", "Priority": 1.0})";
  auto got = read({quota, alice});
  CHECK(got.quota_left == std::map<std::string, double>{{"physics", 69.5}});
  CHECK(got.group_of == std::map<std::string, std::string>{{"alice", "physics"}});
  got = read({quota, alice, R"({"Name": "alice@x", "AccountingGroup": "<none>", "Priority": 1.0})"});
  CHECK(got.group_of.empty());
  // Others are no limit: of the whole pool, a share of it, with surplus.
  for (const auto* other : {R"({"Name": "<none>", "ConfigQuota": 100.0, "SurplusPolicy": "no"})",
                            R"({"Name": "physics", "ConfigQuota": 0.5, "SurplusPolicy": "no"})",
                            R"({"Name": "physics", "ConfigQuota": 100, "SurplusPolicy": "byquota"})",
                            R"({"Name": "physics", "ConfigQuota": 100, "SurplusPolicy": "regroup"})",
                            R"({"Name": "physics", "SurplusPolicy": "no"})"}) {
    CAPTURE(other);
    got = read({other, alice});
    CHECK(got.quota_left.empty());
    CHECK(got.group_of.empty());
  }
  // More than it may have, as after a change of the quota.
  CHECK(read({R"({"Name": "p", "ConfigQuota": 2, "SurplusPolicy": "no", "WeightedResourcesUsed": 9})", alice})
            .quota_left.at("p") == 0);
}

TEST_CASE("priorities: without any ad it is said why") {
  const auto got = read({});
  CHECK(got.unknown == "the collector has no accounting ads of owners");
  CHECK(got.of_owner("alice") == got.of_owner("bob"));
}
