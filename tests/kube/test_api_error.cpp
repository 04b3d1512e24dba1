#include "lib/kube/api_error.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::kube;

namespace {

ApiError of(const Error& error) {
  return ApiError::of(error);
}

}  // namespace

TEST_CASE("api_error: a refusal by authorization says who may not do what, and where") {
  CHECK(of(ApiError::forbidden("system:sa", "get", "pods", "p", "ns")).message ==
        "pods \"p\" is forbidden: User \"system:sa\" cannot get resource \"pods\" in API group \"\" in the "
        "namespace \"ns\"");
  CHECK(
      of(ApiError::forbidden("system:sa", "list", "pods", "", "")).message ==
      "pods is forbidden: User \"system:sa\" cannot list resource \"pods\" in API group \"\" at the cluster "
      "scope");
  CHECK(of(ApiError::forbidden("u", "get", "pods", "p", "ns")).details["name"] == "p");
}

TEST_CASE("api_error: a pod with one wrong field, and with several") {
  const FieldError image{FieldError::Kind::required, "spec.containers[0].image", ""};
  const FieldError name{FieldError::Kind::duplicate, "spec.containers[1].name", "\"a\""};
  const auto one = of(ApiError::invalid_pod("p", {image}));
  CHECK(one.code == 422);
  CHECK(one.message == "Pod \"p\" is invalid: spec.containers[0].image: Required value");
  const auto two = of(ApiError::invalid_pod("p", {image, name}));
  CHECK(two.message ==
        "Pod \"p\" is invalid: [spec.containers[0].image: Required value, spec.containers[1].name: Duplicate "
        "value: \"a\"]");
  CHECK(two.details["causes"][1] == Json{{"reason", "FieldValueDuplicate"},
                                         {"field", "spec.containers[1].name"},
                                         {"message", "Duplicate value: \"a\""}});
}

TEST_CASE("api_error: what podhost does not serve is said in its own words") {
  const FieldError hooks{FieldError::Kind::not_served, "spec.hostAliases", "podhost does not serve this"};
  CHECK(hooks.to_string() == "spec.hostAliases: podhost does not serve this");
  const FieldError wrong{FieldError::Kind::invalid, "spec.x", "must be short"};
  CHECK(wrong.to_string() == "spec.x: Invalid value: must be short");
}

TEST_CASE("api_error: a Status has its details where there are any, and nothing where not") {
  CHECK(of(ApiError::pod_not_found("p")).to_json() == Json{{"kind", "Status"},
                                                           {"apiVersion", "v1"},
                                                           {"metadata", Json::object()},
                                                           {"status", "Failure"},
                                                           {"message", "pods \"p\" not found"},
                                                           {"reason", "NotFound"},
                                                           {"code", 404},
                                                           {"details", {{"name", "p"}, {"kind", "pods"}}}});
  CHECK_FALSE(of(ApiError::unauthorized()).to_json().contains("details"));
}

TEST_CASE("api_error: an error of another kind is an internal one") {
  const auto internal = of(Error("disk full"));
  CHECK(internal.code == 500);
  CHECK(internal.message == "Internal error occurred: disk full");
}
