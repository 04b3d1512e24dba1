#include "podhost/api/resize.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "podhost/api/patch.hpp"
#include "tests/podhost/pods.hpp"

using namespace glidepod::podhost;

namespace {

Json resources(const std::string& cpu, const std::string& memory) {
  return {{"cpu", cpu}, {"memory", memory}};
}

// Two payload containers that share two CPUs and 2 GiB.
Json sized_pod() {
  Json pod = sample_pod();
  Json& containers = pod["spec"]["containers"];
  containers.push_back(containers[1]);
  containers[2]["name"] = "payload-1";
  for (const int i : {1, 2})
    containers[i]["resources"] = {{"requests", resources("1", "1Gi")}, {"limits", resources("2", "2Gi")}};
  pod["metadata"]["annotations"] = {{"glidepod.io/requests.cpu", "2"},
                                    {"glidepod.io/requests.memory", "2Gi"},
                                    {"glidepod.io/limits.cpu", "4"},
                                    {"glidepod.io/limits.memory", "4Gi"}};
  return pod;
}

using Change = std::function<void(Json& pod)>;
Change size(int container, const std::string& cpu, const std::string& memory) {
  return [=](Json& pod) {
    pod["spec"]["containers"][container]["resources"] = {{"requests", resources(cpu, memory)},
                                                         {"limits", resources(cpu, memory)}};
  };
}

// What the API says to the change; empty: it takes it.
std::string answer(const Json& pod, const Change& change, bool own = false) {
  Json wanted = pod;
  change(wanted);
  const auto resized = check_resize(pod, wanted, {.node_name = "node"});
  if (!resized) return glidepod::kube::ApiError::of(resized.error()).message;
  if (!own) return {};
  const auto allowed = refuse_own_resize(pod, resized.value());
  return allowed ? std::string() : glidepod::kube::ApiError::of(allowed.error()).message;
}

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("resize: CPU and memory of containers, by a JSON patch, and nothing else") {
  const Json pod = sized_pod();
  const auto patched = apply_patch(pod, "application/json-patch+json", R"([
    {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
    {"op": "add", "path": "/spec/containers/1/resources/limits/cpu", "value": "1500m"}])");
  const auto resized = check_resize(pod, patched.value(), {.node_name = "node"});
  CHECK(resized->at("spec").at("containers").at(1).at("resources").at("limits") == resources("1500m", "2Gi"));
  CHECK(resized->at("metadata") == pod.at("metadata"));

  CHECK(answer(pod, size(1, "1", "1Gi")).empty());
  const auto only = "only cpu and memory resources of containers are mutable";
  CHECK(has(answer(pod, [](Json& p) { p["spec"]["containers"][1]["image"] = "x"; }), only));
  CHECK(has(answer(pod, [](Json& p) { p["spec"]["restartPolicy"] = "Never"; }), only));
  CHECK(has(answer(pod, [](Json& p) { p["spec"]["containers"].erase(2); }), only));
  CHECK(has(
      answer(pod,
             [](Json& p) { p["spec"]["containers"][1]["resources"]["limits"]["ephemeral-storage"] = "1Gi"; }),
      only));
  CHECK(has(answer(pod, [](Json& p) { p["spec"]["containers"][1]["resources"]["limits"].erase("cpu"); }),
            "cannot be removed"));
  CHECK(has(answer(pod, [](Json& p) { p["spec"]["containers"][1]["resources"]["requests"]["cpu"] = "3"; }),
            "less than or equal to cpu limit"));
  CHECK(has(answer(pod, size(1, "much", "1Gi")), "must match the regular expression"));
  CHECK(has(answer(pod, [](Json& p) { p["metadata"]["resourceVersion"] = "6"; }), "has been modified"));
  Json guaranteed = pod;
  guaranteed["spec"]["containers"].erase(0);
  for (int i : {0, 1}) size(i, "1", "1Gi")(guaranteed);
  CHECK(has(answer(guaranteed,
                   [](Json& p) { p["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"; }),
            "QOS Class may not change"));
}

TEST_CASE("resize: a pod's own socket gives its payload containers no more than the pod was made with") {
  const Json pod = sized_pod();
  CHECK(answer(pod, size(1, "1", "1Gi"), true).empty());
  CHECK(has(answer(pod, size(0, "1", "1Gi"), true), "other than the first"));
  CHECK(has(answer(pod, size(1, "1500m", "1Gi"), true), "glidepod.io/requests.cpu"));
  CHECK(has(answer(pod, size(1, "1", "1025Mi"), true), "glidepod.io/requests.memory"));
  const auto limit = [](const char* name, const Json& value) {
    return [=](Json& p) { p["spec"]["containers"][1]["resources"]["limits"][name] = value; };
  };
  CHECK(has(answer(pod, limit("cpu", 3), true), "glidepod.io/limits.cpu"));
  CHECK(has(answer(pod, limit("memory", "3Gi"), true), "glidepod.io/limits.memory"));
  CHECK(answer(pod, limit("memory", "3Gi")).empty());
  Json bare = pod;
  bare["metadata"].erase("annotations");
  CHECK(has(answer(bare, size(1, "1", "1Gi"), true), "may not have more"));
}

TEST_CASE("resize: sidecars have sizes too, and count with the payload containers") {
  Json pod = sized_pod();
  pod["spec"]["initContainers"] = Json::array({pod["spec"]["containers"][2], pod["spec"]["containers"][2]});
  pod["spec"]["containers"].erase(2);
  pod["spec"]["initContainers"][0]["name"] = "install";
  pod["spec"]["initContainers"][1]["restartPolicy"] = "Always";
  const auto size_of = [](int init, const char* cpu) {
    return [=](Json& p) {
      p["spec"]["initContainers"][init]["resources"] = {{"requests", resources(cpu, "1Gi")},
                                                        {"limits", resources("2", "2Gi")}};
    };
  };
  CHECK(answer(pod, size_of(1, "500m"), true).empty());
  CHECK(has(answer(pod, size_of(1, "1500m"), true), "glidepod.io/requests.cpu"));
  CHECK(has(answer(pod, size_of(1, "3")), "spec.initContainers[1].resources"));
  CHECK(has(answer(pod, size_of(0, "500m")), "only cpu and memory resources of containers are mutable"));
}
