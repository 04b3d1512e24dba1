#include "provisioner/backends/pod_nodes.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::provisioner;
using Json = nlohmann::json;

namespace {

Json terms_of(const char* affinity, const List& hosts) {
  Json pod = {{"metadata", Json::object()}, {"spec", {{"affinity", Json::parse(affinity)}}}};
  avoid_nodes(pod, hosts);
  return pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            ["nodeSelectorTerms"];
}

const Json k_not = {{"key", "kubernetes.io/hostname"}, {"operator", "NotIn"}, {"values", {"a", "b"}}};

}  // namespace

TEST_CASE("pod_nodes: without an affinity there is one term") {
  CHECK(terms_of("{}", {"a", "b"}) == Json::array({{{"matchExpressions", {k_not}}}}));
  CHECK(terms_of("null", {"a", "b"}).size() == 1);
}

TEST_CASE("pod_nodes: what is avoided is said in each term that says something, beside the rest") {
  const auto terms = terms_of(R"({
    "podAntiAffinity": {"x": 1},
    "nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        {}]}}})",
                              {"a", "b"});
  REQUIRE(terms.size() == 3);
  CHECK(terms[0]["matchExpressions"].size() == 2);
  CHECK(terms[0]["matchExpressions"][0]["key"] == "zone");
  CHECK(terms[0]["matchExpressions"][1] == k_not);
  CHECK(terms[1]["matchFields"].size() == 1);
  CHECK(terms[1]["matchExpressions"] == Json::array({k_not}));
  // This one matches no node. With an expression it would match nearly every one.
  CHECK(terms[2] == Json::object());
}

TEST_CASE("pod_nodes: what a pod avoids is read back") {
  Json pod = {{"metadata", {{"annotations", {{"x", "y"}}}}}};
  avoid_nodes(pod, {});
  CHECK(!pod.contains("spec"));
  CHECK(avoided_by(pod).empty());
  avoid_nodes(pod, {"a", "b"});
  CHECK(avoided_by(pod) == List{"a", "b"});
  CHECK(avoided_by(Json()).empty());
  CHECK(avoided_by(Json{{"metadata", {{"annotations", {{"glidepod.io/avoids", 5}}}}}}).empty());
}
