#include "lib/kube/selector.hpp"

#include <doctest/doctest.h>

using namespace glidepod::kube;
using Json = nlohmann::json;

namespace {

bool labelled(const char* selector, const Json& labels) {
  CAPTURE(std::string(selector));
  const auto parsed = LabelSelector::parse(selector);
  REQUIRE(parsed.ok());
  return parsed->matches(labels);
}

bool has_fields(const char* selector, const Json& pod) {
  CAPTURE(std::string(selector));
  const auto parsed = FieldSelector::parse(selector);
  REQUIRE(parsed.ok());
  return parsed->matches(pod);
}

}  // namespace

TEST_CASE("selector: labels are chosen as Kubernetes chooses them") {
  const Json labels = {{"app", "x"}, {"tier", "back"}, {"empty", ""}};
  for (const char* yes : {"",
                          " ",
                          "app=x",
                          "app==x",
                          " app = x ",
                          "app",
                          "!gone",
                          "gone!=x",
                          "app!=y",
                          "app in (x)",
                          "app in (y, x)",
                          "app  in  (y,x)",
                          "app notin (y,z)",
                          "gone notin (x)",
                          "empty=",
                          "empty",
                          "empty in ()",
                          "app=x,tier=back",
                          "tier in (back,front),app",
                          "app in (x),!gone,tier notin (front)"})
    CHECK(labelled(yes, labels));
  for (const char* no : {"app=y", "app==y", "app!=x", "gone", "!app", "gone=x", "app in (y,z)", "gone in (x)",
                         "app notin (x)", "app=x,tier=front", "app=", "empty!=", "app in (y),tier"})
    CHECK_FALSE(labelled(no, labels));
}

TEST_CASE("selector: a pod without labels, and a label that is no text, have no value") {
  CHECK(labelled("!app", nullptr));
  CHECK(labelled("app!=x", nullptr));
  CHECK_FALSE(labelled("app", nullptr));
  CHECK_FALSE(labelled("app", Json{{"app", 7}}));
}

TEST_CASE("selector: what is none is an error that quotes it") {
  for (const char* bad : {",", "app,", "=x", "app near (x)", "app in x", "app in (x", "app in x)", "app in (",
                          "app in", "!", "!=x", "a(b", "app=x,,tier=back", " in (x)"}) {
    CAPTURE(std::string(bad));
    CHECK_FALSE(LabelSelector::parse(bad).ok());
  }
  CHECK(LabelSelector::parse("app near (x)").error().message() ==
        "unable to parse requirement: \"app near (x)\"");
  CHECK(LabelSelector::parse("app in x").error().message() ==
        "unable to parse requirement: expected a list in parentheses, found \"x\"");
}

TEST_CASE("selector: fields of pods, by what is equal and what is not") {
  const Json pod = {{"metadata", {{"name", "p"}, {"namespace", "ns"}}}, {"status", {{"phase", "Running"}}}};
  for (const char* yes :
       {"", " ", "metadata.name=p", "metadata.name==p", " metadata.name = p ", "metadata.name!=q",
        "status.phase=Running,metadata.namespace=ns", "status.podIP=", "spec.nodeName=", "spec.nodeName!=n"})
    CHECK(has_fields(yes, pod));
  for (const char* no : {"metadata.name=q", "metadata.name==q", "metadata.name!=p", "spec.nodeName=n",
                         "status.phase=Running,metadata.namespace=other", "status.podIP!="})
    CHECK_FALSE(has_fields(no, pod));
  CHECK(has_fields("metadata.name=", Json{{"metadata", {{"name", 7}}}}));
  CHECK(has_fields("metadata.name=", Json{{"metadata", "x"}}));
}

TEST_CASE("selector: a field that pods have none of is an error, as in Kubernetes") {
  CHECK(FieldSelector::parse("metadata.uid=1").error().message() ==
        "field label not supported: metadata.uid");
  CHECK(FieldSelector::parse("metadata.name").error().message() ==
        "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
  CHECK_FALSE(FieldSelector::parse("=p").ok());
  CHECK_FALSE(FieldSelector::parse("metadata.name=p,").ok());
}

TEST_CASE("selector: the name that a watch of one pod asks for") {
  CHECK(FieldSelector::parse("status.phase=Running,metadata.name=p")->required("metadata.name") == "p");
  CHECK(FieldSelector::parse("metadata.name!=p")->required("metadata.name") == "");
  CHECK(FieldSelector::parse("status.phase=Running")->required("metadata.name") == "");
}
