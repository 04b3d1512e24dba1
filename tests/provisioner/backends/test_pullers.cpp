#include "provisioner/backends/pullers.hpp"

#include <doctest/doctest.h>

#include "provisioner/backends/kubernetes.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using kube::FakeServer;

namespace {

constexpr Time k_now{Seconds(1'800'000'000)};

// An API that keeps pods, and tells two watches of them: pilots and pullers.
struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<kube::Client> client =
      kube::Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
  std::unique_ptr<Kubernetes> kubernetes;
  std::map<std::string, Json> pods;
  std::map<bool, int> streams;  // of pullers or not
  int version = 10, created = 0, patched = 0, removed = 0, refuse = 0;

  explicit Scene(bool on = true) {
    KubernetesSettings settings;
    settings.name_space = "ns";
    settings.app_name = "wn";
    settings.pullers = on;
    kubernetes = std::make_unique<Kubernetes>(*client, settings, PodMaker::create(settings, nullptr).value(),
                                              PodFeed::Mode::followed);
    server.on_request = [this](const FakeServer::Request& request) { return answer(request); };
  }
  static bool is_puller(const Json& pod) {
    return pod["metadata"]["labels"].value("app.kubernetes.io/name", "") == "glidepod-puller";
  }
  Json& put(Json pod) {
    const std::string name = pod["metadata"]["name"];
    const bool fresh = !pods.contains(name);
    pod["metadata"]["resourceVersion"] = std::to_string(++version);
    if (fresh) pod["metadata"]["uid"] = "uid-" + name;
    pods[name] = std::move(pod);
    tell(fresh ? "ADDED" : "MODIFIED", pods[name]);
    return pods[name];
  }
  void tell(const char* type, const Json& pod) {
    const auto stream = streams.find(is_puller(pod));
    if (stream != streams.end())
      server.send(stream->second, FakeServer::chunk(Json{{"type", type}, {"object", pod}}.dump() + "\n"));
  }
  FakeServer::Reply answer(const FakeServer::Request& request) {
    const auto path = request.target.substr(0, request.target.find('?'));
    const auto name = path.substr(path.rfind('/') + 1);
    if (name == "resourcequotas" || name == "nodes") return FakeServer::json(403, "{}");
    const bool pullers = request.target.find("glidepod-puller") != std::string::npos;
    if (request.target.find("watch=true") != std::string::npos) {
      streams[pullers] = request.connection;
      return FakeServer::stream();
    }
    if (request.method == "POST") {
      ++created;
      if (refuse != 0)
        return FakeServer::json(refuse,
                                R"({"kind": "Status", "message": "images from here are not allowed"})");
      return FakeServer::json(201, put(Json::parse(request.body)).dump());
    }
    if (request.method == "PATCH") {
      ++patched;
      Json pod = pods.at(name);
      pod.merge_patch(Json::parse(request.body));
      return FakeServer::json(200, put(pod).dump());
    }
    if (request.method == "DELETE") {
      ++removed;
      tell("DELETED", pods.at(name));
      pods.erase(name);
      return FakeServer::json(200, "{}");
    }
    Json list = {{"items", Json::array()}, {"metadata", {{"resourceVersion", std::to_string(version)}}}};
    for (const auto& [key, pod] : pods)
      if (is_puller(pod) == pullers) list["items"].push_back(pod);
    return FakeServer::json(200, list.dump());
  }
  void look() {
    bool done = false;
    kubernetes->look(k_now, [&](const Seen&) { done = true; });
    until([&] { return done; });
    until([&] { return streams.size() == 2; });
  }
  void until(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) REQUIRE(loop.run_once(Milliseconds(10)).ok());
    REQUIRE(condition());
  }
  // Nothing more comes of what there is.
  void rest() {
    for (int i = 0; i < 20; ++i) REQUIRE(loop.run_once(Milliseconds(5)).ok());
  }
  void pilot(const std::string& name, const std::string& wanted) {
    put({{"metadata",
          {{"name", name},
           {"annotations", {{"glidepod.io/wanted-images", wanted}}},
           {"labels", {{"k8s-app", "wn"}}}}},
         {"spec",
          {{"nodeName", "n1"},
           {"containers",
            {{{"name", "pilot"}, {"image", "pilot:1"}}, {{"name", "payload-0"}, {"image", "pilot:1"}}}}}},
         {"status", {{"phase", "Running"}}}});
  }
  Json puller() {
    for (const auto& [name, pod] : pods)
      if (is_puller(pod)) return pod;
    FAIL("no puller");
    return {};
  }
  void puller_is(const Json& state, const std::string& phase = "Pending") {
    Json pod = puller();
    pod["status"] = {{"phase", phase}, {"containerStatuses", {{{"name", "pull"}, {"state", state}}}}};
    put(pod);
  }
  std::vector<kube::PulledImage> told(const std::string& name) {
    return kube::read_pulled(pods.at(name)["metadata"]["annotations"].value("glidepod.io/pulled-images", ""));
  }
  bool is(const std::string& name, kube::PulledImage::State state) {
    const auto all = told(name);
    return all.size() == 1 && all[0].state == state;
  }
};

const char* const k_one = R"([{"image": "docker.io/library/a:1", "ask": "x"}])";
using Told = kube::PulledImage::State;

// A pilot and two pullers of an earlier provisioner: one that it waits for, and "wn-pull-old", which nobody
// does.
void see_earlier_ones(Scene& scene) {
  scene.put(make_puller({{"n1", "docker.io/library/b:1", "", {}}, "wn-pull-old", "pilot:1"},
                        {"ns", "wn", 600, false}));
  const PullKey key{"n1", "docker.io/library/a:1", "", {}};
  scene.put(make_puller({key, key.pod_name("wn"), "pilot:1"}, {"ns", "wn", 600, false}));
  scene.pilot("p", k_one);
  scene.look();
  scene.until([&] { return scene.removed == 1 && scene.is("p", Told::pulling); });
}

}  // namespace

TEST_CASE("pullers: an event of the watch is enough: made, told, removed") {
  Scene scene;
  scene.look();
  scene.pilot("p", k_one);
  scene.until([&] { return scene.created == 1 && scene.is("p", Told::pulling); });
  scene.puller_is({{"waiting", {{"reason", "ErrImagePull"}, {"message", "i/o timeout"}}}});
  scene.until([&] { return scene.is("p", Told::failed); });
  // The words of the pause do not take the place of the registry's.
  const int patched = scene.patched;
  scene.puller_is({{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "Back-off pulling"}}}});
  scene.rest();
  CHECK(scene.patched == patched);
  CHECK(scene.told("p").at(0).message == "i/o timeout");
  scene.puller_is({{"terminated", {{"reason", "Completed"}}}}, "Succeeded");
  scene.until([&] { return scene.is("p", Told::ready) && scene.removed == 1; });
  scene.rest();
  CHECK(scene.created == 1);
  CHECK(scene.pods.size() == 1);
}

TEST_CASE("pullers: two pilots share one, and what nobody wants goes") {
  Scene scene;
  scene.look();
  scene.pilot("p", k_one);
  scene.pilot("q", k_one);
  scene.until([&] { return scene.is("p", Told::pulling) && scene.is("q", Told::pulling); });
  CHECK(scene.created == 1);
  scene.pilot("p", "[]");
  scene.rest();
  CHECK(scene.removed == 0);
  scene.tell("DELETED", scene.pods.at("q"));
  scene.pods.erase("q");
  scene.until([&] { return scene.removed == 1; });
}

TEST_CASE("pullers: one that may not be made is said to be lost, and not tried again and again") {
  Scene scene;
  scene.refuse = 403;
  scene.look();
  scene.pilot("p", k_one);
  scene.until([&] { return scene.is("p", Told::lost); });
  scene.rest();
  CHECK(scene.created == 1);
  CHECK(scene.told("p").at(0).message.find("not allowed") != std::string::npos);
}

TEST_CASE("pullers: those of an earlier provisioner are known, and removed where nobody wants them") {
  Scene scene;
  see_earlier_ones(scene);
  CHECK_FALSE(scene.pods.contains("wn-pull-old"));
  CHECK(scene.created == 0);
}

TEST_CASE("pullers: switched off, those at work still tell their pilots, and are removed") {
  Scene scene(false);
  see_earlier_ones(scene);
  scene.puller_is({{"terminated", {{"reason", "Completed"}}}}, "Succeeded");
  scene.until([&] { return scene.is("p", Told::ready) && scene.removed == 2; });
  CHECK(scene.created == 0);
}

TEST_CASE("pullers: a hostile pilot's wishes make no more than the limits") {
  Scene scene;
  scene.look();
  std::string text = "[";
  for (int i = 0; i < 4'000; ++i) text += fmt::format(R"({{"image": "a:{}", "ask": "x{}"}},)", i, i);
  scene.pilot("hostile", text + R"({"image": "b", "ask": "y"}])");
  scene.rest();
  CHECK(scene.created == 0);
  std::vector<kube::WantedImage> many;
  many.reserve(16);
  for (int i = 0; i < 16; ++i)
    many.push_back({"docker.io/library/a:" + std::to_string(i), "x" + std::to_string(i)});
  for (int round = 0; round < 6; ++round) {
    for (auto& wanted : many) wanted.ask += "x";
    scene.pilot("hostile", kube::wanted_text(many));
    scene.rest();
    CHECK(scene.created <= 8);
  }
  scene.pilot("p", "[]");
  scene.pilot("p", R"([{"image": "../../x", "ask": "x"}, {"image": "a b", "ask": "y"}])");
  scene.rest();
  CHECK(scene.created == 8);
}

TEST_CASE("pullers: nothing is made where they are off, or when it winds up") {
  Scene off(false);
  off.look();
  off.pilot("p", k_one);
  off.until([&] { return off.is("p", Told::lost); });  // it need not wait for one
  off.rest();
  CHECK(off.created == 0);
  Scene scene;
  scene.look();
  scene.kubernetes->wind_up();
  scene.pilot("p", k_one);
  scene.rest();
  CHECK(scene.created == 0);
}
