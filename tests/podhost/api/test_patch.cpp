#include "podhost/api/patch.hpp"

#include <doctest/doctest.h>

#include "podhost/api/access.hpp"
#include "tests/podhost/pods.hpp"

using namespace glidepod::podhost;

namespace {

constexpr const char* k_strategic = "application/strategic-merge-patch+json";
constexpr const char* k_merge = "application/merge-patch+json";
constexpr const char* k_json = "application/json-patch+json";

glidepod::Result<Json> patched(const char* type, const std::string& body) {
  const Json pod = sample_pod();
  auto result = apply_patch(pod, type, body);
  if (!result) return result.error();
  return check_update(pod, std::move(*result));
}

Json image_patch(const std::string& container, const std::string& image) {
  return {{"spec", {{"containers", {{{"name", container}, {"image", image}}}}}}};
}

}  // namespace

TEST_CASE("patch: a strategic merge finds the container by its name") {
  const auto pod = patched(k_strategic, image_patch("payload-0", "new:2").dump());
  REQUIRE(pod);
  CHECK((*pod)["spec"]["containers"][1]["image"] == "new:2");
  CHECK((*pod)["spec"]["containers"][0]["image"] == "pilot:1");
  CHECK((*pod)["spec"]["containers"][1]["command"] == Json{"glue"});
}

TEST_CASE("patch: kubectl's ordering directives are understood") {
  Json patch = image_patch("payload-0", "new:2");
  patch["spec"]["$setElementOrder/containers"] = {{{"name", "pilot"}}, {{"name", "payload-0"}}};
  CHECK(patched(k_strategic, patch.dump()));
}

TEST_CASE("patch: a JSON patch, and its test") {
  CHECK(patched(k_json, R"([{"op":"replace","path":"/spec/containers/1/image","value":"new:2"}])"));
  const auto failed = patched(k_json, R"([{"op":"test","path":"/spec/containers/1/image","value":"other"},
                                          {"op":"replace","path":"/spec/containers/1/image","value":"new:2"}])");
  REQUIRE_FALSE(failed);
  CHECK(glidepod::kube::ApiError::of(failed.error()).code == 422);
  CHECK(glidepod::kube::ApiError::of(
            patched(k_json, R"([{"op":"replace","path":"/spec/none/1","value":1}])").error())
            .code == 422);
  CHECK(glidepod::kube::ApiError::of(patched(k_json, R"({"op":"add"})").error()).code == 400);
}

TEST_CASE("patch: a JSON patch cannot make the pod huge or reach where nothing is") {
  for (const auto* operation :
       {R"([{"op":"add","path":"/spec/containers/4000000000/image","value":"x"}])",
        R"([{"op":"add","path":"/spec/containers/3","value":{}}])",
        R"([{"op":"add","path":"/metadata/name/x","value":1}])",
        R"([{"op":"copy","from":"/spec","path":"/metadata/labels/x"}])",
        R"([{"op":"remove","path":"/spec/none"}])",
        R"([{"op":"add","path":"/spec/containers/01","value":{}}])",
        R"([{"op":"move","from":"/spec","path":"/spec/x"}])", R"([{"op":"add","path":"no slash","value":1}])",
        R"([{"path":"/spec"}])", "[1]"}) {
    CAPTURE(operation);
    const auto refused = patched(k_json, operation);
    REQUIRE_FALSE(refused);
    CHECK(glidepod::kube::ApiError::of(refused.error()).code == 422);
  }
  std::string many = "[";
  for (int i = 0; i < 1001; ++i) many += R"({"op":"test","path":"/kind","value":"Pod"},)";
  many.back() = ']';
  CHECK(glidepod::kube::ApiError::of(patched(k_json, many).error()).code == 413);
}

TEST_CASE("patch: what is nested deeply is refused before it costs any stack") {
  const std::string deep =
      R"({"metadata":{"labels":)" + std::string(500000, '[') + std::string(500000, ']') + "}}";
  for (const auto* type : {k_strategic, k_merge}) {
    const auto refused = patched(type, deep);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() == "error decoding patch: it is nested too deeply");
  }
}

TEST_CASE("patch: a merge patch replaces lists, and so is refused here") {
  const auto refused = patched(k_merge, image_patch("payload-0", "new:2").dump());
  REQUIRE_FALSE(refused);
  CHECK(glidepod::kube::ApiError::of(refused.error()).code == 422);
  CHECK(patched(k_merge, R"({"metadata":{"labels":{"a":"b"}}})"));
}

TEST_CASE("patch: only images, labels and annotations may change") {
  const auto refused =
      patched(k_strategic, R"({"spec":{"containers":[{"name":"payload-0","command":["x"]}]}})");
  REQUIRE_FALSE(refused);
  CHECK(glidepod::kube::ApiError::of(refused.error()).code == 422);
  CHECK(glidepod::kube::ApiError::of(refused.error()).reason == "Invalid");
  CHECK(refused.error().message().find(
            "pod updates may not change fields other than `spec.containers[*].image`") != std::string::npos);
  CHECK_FALSE(patched(k_strategic, R"({"spec":{"containers":[{"name":"third","image":"x"}]}})"));
  CHECK_FALSE(patched(k_strategic, R"({"spec":{"containers":[{"name":"payload-0","$patch":"delete"}]}})"));
  CHECK_FALSE(patched(k_strategic, R"({"spec":null})"));
  CHECK_FALSE(patched(k_strategic, R"({"metadata":{"name":"other"}})"));
  CHECK(
      glidepod::kube::ApiError::of(patched(k_strategic, image_patch("payload-0", "").dump()).error()).code ==
      422);
  const auto labelled = patched(k_strategic, R"({"metadata":{"labels":{"app":null,"b":"c"}}})");
  REQUIRE(labelled);
  CHECK((*labelled)["metadata"]["labels"] == Json{{"b", "c"}});
}

TEST_CASE("patch: a deadline may be set and drawn nearer") {
  const auto pod = patched(k_strategic, R"({"spec":{"activeDeadlineSeconds":60}})");
  REQUIRE(pod);
  CHECK((*pod)["spec"]["activeDeadlineSeconds"] == 60);
  const auto again = [&](const Json& seconds) {
    Json next = *pod;
    next["spec"]["activeDeadlineSeconds"] = seconds;
    return check_update(*pod, next);
  };
  CHECK(again(1));
  CHECK(again(60));
  for (const Json& seconds : {Json(61), Json(0), Json(-1), Json("5"), Json(1.5), Json()}) {
    CAPTURE(seconds.dump());
    const auto refused = again(seconds);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("spec.activeDeadlineSeconds: Invalid value") != std::string::npos);
  }
}

TEST_CASE("patch: the status and the server's own metadata cannot be changed") {
  const auto pod =
      patched(k_strategic, R"({"metadata":{"uid":"u-1","creationTimestamp":"x","finalizers":["f"]},
                                            "status":{"phase":"Failed"}})");
  REQUIRE(pod);
  CHECK(*pod == sample_pod());
  CHECK(glidepod::kube::ApiError::of(patched(k_strategic, R"({"metadata":{"uid":"u-2"}})").error()).code ==
        409);
}

TEST_CASE("patch: a stale resourceVersion is a conflict") {
  Json patch = image_patch("payload-0", "new:2");
  patch["metadata"] = {{"resourceVersion", "6"}};
  CHECK(glidepod::kube::ApiError::of(patched(k_strategic, patch.dump()).error()).code == 409);
  patch["metadata"]["resourceVersion"] = "7";
  CHECK(patched(k_strategic, patch.dump()));
}

TEST_CASE("patch: malformed bodies and unknown types") {
  CHECK(glidepod::kube::ApiError::of(patched(k_strategic, "{").error()).code == 400);
  CHECK(glidepod::kube::ApiError::of(patched(k_strategic, "[]").error()).code == 400);
  CHECK(
      glidepod::kube::ApiError::of(patched(k_strategic, R"({"spec":{"containers":[{"image":"x"}]}})").error())
          .code == 400);
  CHECK(glidepod::kube::ApiError::of(patched("application/apply-patch+yaml", "{}").error()).code == 415);
  CHECK(glidepod::kube::ApiError::of(patched("", "{}").error()).code == 415);
}

TEST_CASE("access: a pod may read and watch itself and nothing else") {
  const Json own = sample_pod();
  struct Row {
    PodRequest request;
    bool allowed;
  };
  for (const auto& row :
       {Row{{"get", "ns", "p", "", ""}, true}, Row{{"patch", "ns", "p", "", ""}, true},
        Row{{"watch", "ns", "", "", "p"}, true}, Row{{"list", "ns", "", "", "p"}, true},
        Row{{"watch", "ns", "p", "", ""}, true}, Row{{"list", "ns", "", "", ""}, false},
        Row{{"list", "", "", "", "p"}, false}, Row{{"get", "ns", "other", "", ""}, false},
        Row{{"get", "other", "p", "", ""}, false}, Row{{"get", "ns", "p", "log", ""}, false},
        Row{{"watch", "ns", "", "", "other"}, false}, Row{{"create", "ns", "", "", "p"}, false},
        Row{{"update", "ns", "p", "", ""}, false}, Row{{"delete", "ns", "p", "", ""}, false},
        Row{{"patch", "ns", "other", "", ""}, false}}) {
    const auto refused = refuse_pod_request(own, row.request);
    CAPTURE(row.request.verb + " " + row.request.name);
    CHECK(refused.ok() == row.allowed);
    if (!refused) CHECK(glidepod::kube::ApiError::of(refused.error()).code == 403);
  }
  CHECK(refuse_pod_request(own, {"delete", "ns", "p", "", ""}).error().message() ==
        "pods \"p\" is forbidden: User \"system:serviceaccount:ns:default\" cannot delete resource \"pods\" "
        "in API "
        "group \"\" in the namespace \"ns\"");
}

TEST_CASE("access: a pod may change the images of its containers other than the first") {
  const Json old_pod = sample_pod();
  Json pod = old_pod;
  pod["spec"]["containers"][1]["image"] = "new";
  CHECK(refuse_pod_change(old_pod, pod));
  pod["spec"]["containers"][0]["image"] = "new";
  CHECK(glidepod::kube::ApiError::of(refuse_pod_change(old_pod, pod).error()).code == 403);
  pod = old_pod;
  pod["spec"]["activeDeadlineSeconds"] = 1;
  CHECK(refuse_pod_change(old_pod, pod));
  Json with_init = old_pod;
  with_init["spec"]["initContainers"] = Json::parse(
      R"([{"name": "install", "image": "i"}, {"name": "beside", "image": "i", "restartPolicy": "Always"}])");
  pod = with_init;
  pod["spec"]["initContainers"][1]["image"] = "new";
  CHECK(refuse_pod_change(with_init, pod));
  pod["spec"]["initContainers"][0]["image"] = "new";
  CHECK(glidepod::kube::ApiError::of(refuse_pod_change(with_init, pod).error()).code == 403);
  pod = old_pod;
  pod["metadata"]["labels"]["app"] = "y";
  CHECK(glidepod::kube::ApiError::of(refuse_pod_change(old_pod, pod).error()).code == 403);
}
