// Which images pods are made with, and what pilots are told of what waits.
#include <doctest/doctest.h>

#include "tests/provisioner/backends/kubernetes_scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::kubernetes_test;

namespace {

Json pilot_template() {
  Json containers = Json::array();
  for (const auto* name : {"pilot", "payload-0", "payload-1"})
    containers.push_back({{"name", name}, {"image", "pilot:1"}});
  return {{"kind", "Pod"}, {"metadata", Json::object()}, {"spec", {{"containers", containers}}}};
}

std::string image_of_last(Scene& scene, const std::string& name) {
  return scene.pods[name]["spec"]["containers"][2]["image"].get<std::string>();
}

GroupDemand wants(const char* image) {
  GroupDemand demand;
  demand.idle = 5;
  demand.images = {{image, 5}};
  return demand;
}

}  // namespace

TEST_CASE("kubernetes: pods are born on what their group's jobs want, if the settings say so") {
  const auto pod = pilot_template();
  Scene scene(&pod, true);
  CHECK(scene.create("unknown") == "");
  CHECK(image_of_last(scene, "unknown") == "pilot:1");
  scene.kubernetes->want({{Group(), wants("a:1")}});
  CHECK(scene.create("born") == "");
  CHECK(image_of_last(scene, "born") == "a:1");
  CHECK(scene.pods["born"]["spec"]["containers"][1]["image"] == "pilot:1");
  CHECK(scene.create("other", {.cpus = 4}) == "");
  CHECK(image_of_last(scene, "other") == "pilot:1");
  // That jobs want something else by now makes no pod outdated.
  scene.kubernetes->want({{Group(), wants("b:1")}});
  for (const auto& seen : scene.look().pods) CHECK_FALSE(seen.outdated);
  Scene off(&pod);
  off.kubernetes->want({{Group(), wants("a:1")}});
  CHECK(off.create("plain") == "");
  CHECK(image_of_last(off, "plain") == "pilot:1");
}

TEST_CASE("kubernetes: an image that keeps a pod waiting is given to no other for an hour") {
  const auto pod = pilot_template();
  Scene scene(&pod, true);
  scene.kubernetes->want({{Group(), wants("a:1")}});
  CHECK(scene.create("a") == "");
  scene.pods["a"]["spec"]["nodeName"] = "n";
  // Its pilot's image was there a long time after it was made.
  scene.pods["a"]["metadata"]["creationTimestamp"] = "2027-01-15T08:00:00Z";  // k_now
  scene.pods["a"]["status"]["initContainerStatuses"] = Json::parse(
      R"([{"name": "install", "state": {"terminated": {"finishedAt": "2027-01-15T08:14:00Z"}}}])");
  // The pods are listed anew after a quarter of an hour.
  scene.look(k_now + Seconds(900));
  CHECK(scene.create("early") == "");
  CHECK(image_of_last(scene, "early") == "a:1");
  scene.pods.erase("early");
  scene.look(k_now + Seconds(2000));
  CHECK(scene.create("b") == "");
  CHECK(image_of_last(scene, "b") == "pilot:1");
  scene.pods.erase("a");
  scene.look(k_now + Seconds(2000 + 3601));
  CHECK(scene.create("c") == "");
  CHECK(image_of_last(scene, "c") == "a:1");
}

TEST_CASE("kubernetes: pilots with spare containers are told what their jobs want, and nobody else") {
  auto pod = pilot_template();
  pod["spec"]["containers"][0]["env"] = Json::array({{{"name", "GLIDEPOD_SPARES"}, {"value", "1"}}});
  Scene scene(&pod);
  CHECK(scene.create("a") == "");
  const auto run = [&](const char* name) {
    scene.pods[name]["spec"]["nodeName"] = "n";
    scene.pods[name]["status"] = Json::parse(
        R"({"phase": "Running", "containerStatuses": [{"name": "pilot", "state": {"running": {}}}]})");
  };
  run("a");
  std::vector<FakeServer::Request> patches;
  int code = 200;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method != "PATCH") return {};
    patches.push_back(request);
    return FakeServer::json(code, code == 200 ? "{}" : Scene::status(code, "Forbidden", "no"));
  };
  const auto tell = [&](Seconds later, const char* image) {
    scene.look(k_now + later);
    const auto before = patches.size();
    scene.kubernetes->want({{Group(), wants(image)}});
    scene.loop.after(Milliseconds(100), [&] { scene.loop.stop(); });
    REQUIRE(scene.loop.run().ok());
    return patches.size() - before;
  };
  CHECK(tell(Seconds(1000), "a:1") == 1);
  CHECK(patches[0].target.starts_with("/api/v1/namespaces/ns/pods/a?"));
  CHECK(Json::parse(patches[0].body) == Json::parse(R"({"metadata": {"uid": "uid-a", "annotations":
          {"glidepod.io/likely-images": "[{\"image\":\"a:1\",\"share\":1000}]"}}})"));
  CHECK(tell(Seconds(1010), "b:1") == 0);
  code = 403;
  CHECK(tell(Seconds(3000), "b:1") == 1);
  CHECK(tell(Seconds(6000), "b:1") == 0);
}
TEST_CASE("kubernetes: where a job's image is refused its pod is made without it") {
  const auto pod = pilot_template();
  Scene scene(&pod, true);
  scene.kubernetes->want({{Group(), wants("a:1")}});
  int attempts = 0;
  std::string why = "images from here are not allowed";
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method != "POST") return {};
    ++attempts;
    if (request.body.find("a:1") == std::string::npos && why != "quota") return {};
    return FakeServer::json(403, Scene::status(403, "Forbidden", why));
  };
  CHECK(scene.create("a") == "");
  CHECK(attempts == 2);
  CHECK(image_of_last(scene, "a") == "pilot:1");
  // What is refused all the same is told.
  why = "quota";
  CHECK(scene.create("b") == "403 Forbidden: quota");
}
