#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "lib/kube/client.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::kube;
using Json = nlohmann::json;

namespace {

struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Client> client =
      Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
  Json pod = Json::parse(R"({"metadata": {"name": "p", "resourceVersion": "1"}, "spec": {"containers": [
    {"name": "pilot"}, {"name": "payload-0", "resources": {
      "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "1Gi"}}}]}})");
  int version = 1;
  std::function<std::optional<FakeServer::Reply>(const FakeServer::Request&)> meddle;
  std::optional<Result<Pod>> answer;

  Scene() {
    server.on_request = [this](const FakeServer::Request& request) {
      if (meddle)
        if (auto reply = meddle(request)) return *reply;
      if (request.method == "PATCH") {
        try {
          pod = pod.patch(Json::parse(request.body));
          grow();
        } catch (const Json::exception&) {
          return refusal(422, "test failed");
        }
      }
      return FakeServer::json(200, pod.dump());
    };
  }
  static FakeServer::Reply refusal(int code, const std::string& message) {
    return FakeServer::json(
        code, Json{{"kind", "Status"}, {"code", code}, {"reason", "Invalid"}, {"message", message}}.dump());
  }
  void grow() { pod["metadata"]["resourceVersion"] = std::to_string(++version); }
  Json resources() const { return pod["spec"]["containers"][1]["resources"]; }
  std::string asked() const {
    std::string methods;
    for (const auto& request : server.requests) methods += (methods.empty() ? "" : " ") + request.method;
    return methods;
  }
  void resize(const std::string& container = "payload-0", Milliseconds patience = std::chrono::seconds(20)) {
    const std::vector<SizeChange> changes = {{container, {{500, 1000}, {1500, std::int64_t{1} << 30}}}};
    const auto operation = client->resize({"ns", "p"}, changes, std::chrono::steady_clock::now() + patience,
                                          [this](Result<Pod> got) { answer = std::move(got); });
    for (int i = 0; i < 10'000 && !answer; ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
  }
};

}  // namespace

TEST_CASE("resize: one patch of the subresource, of the very pod that was seen") {
  Scene scene;
  scene.resize();
  REQUIRE(scene.answer->ok());
  CHECK(scene.asked() == "GET PATCH");
  CHECK(scene.server.requests.back().target == "/api/v1/namespaces/ns/pods/p/resize?fieldManager=glidepod");
  CHECK(scene.server.requests.back().headers.find("application/json-patch+json") != std::string::npos);
  CHECK(scene.resources() == Json::parse(R"({"requests": {"cpu": "500m", "memory": "1000"},
    "limits": {"cpu": "1500m", "memory": "1073741824", "ephemeral-storage": "1Gi"}})"));
  CHECK(scene.answer->value().container("payload-0")->size == Size{{500, 1000}, {1500, 1 << 30}});
}

TEST_CASE("resize: an attempt that comes late, after another change, does nothing") {
  Scene scene;
  scene.resize();
  const std::string late = scene.server.requests.back().body;
  CHECK_THROWS_AS((void)scene.pod.patch(Json::parse(late)), Json::exception);
}

TEST_CASE("resize: a pod that has changed meanwhile is looked at again") {
  Scene scene;
  scene.meddle = [&scene, first = true](const FakeServer::Request& request) mutable {
    if (request.method == "PATCH" && std::exchange(first, false)) scene.grow();
    return std::nullopt;
  };
  scene.resize();
  CHECK(scene.answer->ok());
  CHECK(scene.asked() == "GET PATCH GET PATCH");
}

TEST_CASE("resize: a refusal is one, and nothing has changed") {
  for (const int code : {403, 404, 405, 422}) {
    Scene scene;
    scene.meddle = [code](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
      if (request.method != "PATCH") return std::nullopt;
      return Scene::refusal(code, "no");
    };
    scene.resize();
    const Failure failure = Failure::of(scene.answer->error());
    CHECK(failure.status == code);
    CHECK(failure.rejected());
    CHECK(scene.asked() == (code == 422 ? "GET PATCH GET" : "GET PATCH"));
  }
  Scene scene;
  scene.resize("payload-9");
  CHECK_FALSE(scene.answer->ok());
}

TEST_CASE("resize: where nobody tells what a refusal was of, nothing is claimed") {
  Scene scene;
  bool patched = false;
  scene.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "GET" && patched) return Scene::refusal(403, "no");
    if (request.method == "GET") return std::nullopt;
    patched = true;
    return Scene::refusal(422, "no");
  };
  scene.resize();
  CHECK(Failure::of(scene.answer->error()).status == 403);
  CHECK_FALSE(Failure::of(scene.answer->error()).rejected());
}

TEST_CASE("resize: a pod that may not be read is as it was") {
  Scene scene;
  scene.meddle = [](const FakeServer::Request&) { return Scene::refusal(403, "no"); };
  scene.resize();
  CHECK(Failure::of(scene.answer->error()).rejected());
}

TEST_CASE("resize: somebody who changes the pod again and again is not fought beyond the deadline") {
  Scene scene;
  int patches = 0;
  scene.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "PATCH") ++patches, scene.grow();
    return std::nullopt;
  };
  scene.resize("payload-0", Milliseconds(100));
  REQUIRE(scene.answer.has_value());
  CHECK_FALSE(scene.answer->ok());
  CHECK(patches > 1);
}
