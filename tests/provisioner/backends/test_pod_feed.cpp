#include "provisioner/backends/pod_feed.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "provisioner/service/api_counts.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using kube::FakeServer;
using Json = nlohmann::json;

namespace {

constexpr Time k_now{Seconds(1'800'000'000)};

Json pod(const std::string& name, int version, const char* phase = "Pending") {
  return {{"metadata",
           {{"name", name},
            {"uid", "uid-" + name},
            {"resourceVersion", std::to_string(version)},
            {"labels", {{"PodCPUs", "2"}}}}},
          {"spec", {{"containers", {{{"name", "pilot"}, {"image", "img"}}}}}},
          {"status", {{"phase", phase}}}};
}

std::string line(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

// An API that lists two pods as of version 10 and lets the test say what its watch tells.
struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<kube::Client> client =
      kube::Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
  ApiCounts counts;
  kube::Calls calls{*client};
  PodFeed feed{*client, calls, "/pods", "app=wn", PodFeed::Mode::followed, 3};
  int lists = 0, watches = 0, stream = -1;
  FakeServer::Reply watch_reply = FakeServer::stream();
  std::string blind;

  Scene() {
    client->observe(counts.observer());
    server.on_request = [this](const FakeServer::Request& request) {
      if (request.target.find("watch=true") == std::string::npos) {
        ++lists;
        return FakeServer::json(
            200,
            Json{{"metadata", {{"resourceVersion", "10"}}}, {"items", {pod("a", 3), pod("b", 4)}}}.dump());
      }
      ++watches;
      stream = request.connection;
      return watch_reply;
    };
  }
  void read(Time now = k_now) {
    bool done = false;
    feed.read(now, [&](const Result<void>& read) {
      blind = read ? "" : read.error().message();
      done = true;
    });
    CHECK(!done);
    until([&] { return done; });
  }
  void until(const std::function<bool()>& condition) {
    bool met = condition();
    for (int i = 0; i < 1000 && !met; ++i) {
      REQUIRE(loop.run_once(Milliseconds(10)).ok());
      met = condition();
    }
    REQUIRE(met);
  }
  void tell(const std::string& lines) { server.send(stream, FakeServer::chunk(lines)); }
};

}  // namespace

TEST_CASE("pod feed: one list, then a watch from its version, looks cost nothing") {
  Scene scene;
  scene.read();
  scene.until([&] { return scene.watches == 1; });
  CHECK(scene.server.requests.back().target.find("resourceVersion=10") != std::string::npos);
  CHECK(scene.server.requests.back().target.find("labelSelector=app%3Dwn") != std::string::npos);
  CHECK(scene.feed.pods().size() == 2);
  // A line in pieces, then several at once.
  const auto added = line("ADDED", pod("c", 11));
  scene.tell(added.substr(0, 40));
  scene.tell(added.substr(40) + line("MODIFIED", pod("a", 12, "Succeeded")) + line("DELETED", pod("b", 13)) +
             line("BOOKMARK", {{"metadata", {{"resourceVersion", "20"}}}}));
  scene.until([&] { return scene.feed.pods().size() == 2 && !scene.feed.pods().contains("b"); });
  CHECK(scene.feed.pods().at("a").pod->state == PodState::succeeded);
  CHECK(scene.feed.pods().at("c").pod->group.cpus == 2);
  CHECK(scene.feed.pods().at("c").uid == "uid-c");
  for (int i = 0; i < 5; ++i) scene.read();
  CHECK(scene.blind == "");
  CHECK(scene.lists == 1);
  CHECK(scene.counts.requests.at({"GET", 200}) == 1);
}

TEST_CASE("pod feed: of a list only its own items are pods, each of them whole") {
  Scene scene;
  auto a = pod("a", 3);
  a["items"] = {pod("inner", 1)};
  a["spec"]["volumes"] = {{{"name", "v"}, {"secret", {{"items", {{{"key", "k"}}}}}}}};
  Json told;
  scene.feed.listen({.changed = [&told](const Json& pod) { told.push_back(pod); }});
  scene.server.on_request = [&](const FakeServer::Request&) {
    return FakeServer::json(200, Json{{"extra", {{{"items", {pod("no", 1)}}}}},
                                      {"items", {a, pod("b", 4)}},
                                      {"more", {pod("neither", 1)}},
                                      {"metadata", {{"other", {{"deep", {{"x", 1}}}}}}}}
                                     .dump());
  };
  scene.read();
  CHECK(told == Json{a, pod("b", 4)});
  CHECK(scene.feed.pods().size() == 2);
}

TEST_CASE("pod feed: a watch that fails, or says what cannot be understood, is mended by the next list") {
  for (const auto& bad :
       {std::string("{\"type\": \"ERROR\", \"object\": {\"code\": 410}}\n"), std::string("nonsense\n")}) {
    Scene scene;
    scene.read();
    scene.until([&] { return scene.watches == 1; });
    scene.tell(line("DELETED", pod("b", 13)) + bad + line("DELETED", pod("a", 14)));
    scene.until([&] { return scene.feed.pods().size() == 1; });
    CHECK(scene.lists == 1);
    scene.read();
    CHECK(scene.lists == 2);
    CHECK(scene.feed.pods().size() == 2);
    scene.until([&] { return scene.watches == 2; });
  }
}

TEST_CASE("pod feed: a watch that fails for a while goes on from where it was, without a list") {
  const auto refused = [](int status) {
    return FakeServer::json(status, Json{{"kind", "Status"}, {"code", status}, {"message", "no"}}.dump());
  };
  for (const auto& bad : {refused(429), refused(503), FakeServer::Reply{"", true}}) {
    Scene scene;
    scene.read();
    scene.until([&] { return scene.watches == 1; });
    scene.tell(line("DELETED", pod("b", 13)));
    scene.until([&] { return scene.feed.pods().size() == 1; });
    scene.watch_reply = bad;
    scene.server.send(scene.stream, "no chunk\r\n");
    scene.until([&] { return scene.watches == 3; });
    scene.read();
    CHECK(scene.lists == 1);
    scene.watch_reply = FakeServer::stream();
    scene.until([&] { return scene.watches == 4; });
    CHECK(scene.server.requests.back().target.find("resourceVersion=13") != std::string::npos);
    scene.tell(line("ADDED", pod("c", 14)));
    scene.until([&] { return scene.feed.pods().contains("c"); });
    CHECK(scene.lists == 1);
  }
}

TEST_CASE("pod feed: a watch that fails again and again, or for long, is mended by the next list") {
  const auto lists_after = [](const FakeServer::Reply& bad, int watches) {
    Scene scene;
    scene.watch_reply = bad;
    scene.read();
    scene.until([&] { return scene.watches == watches; });
    const auto before = std::chrono::steady_clock::now();
    scene.until([&] {
      scene.read();
      return scene.lists == 2 || std::chrono::steady_clock::now() - before > Seconds(5);
    });
    return scene.lists;
  };
  CHECK(lists_after({"", true}, 4) == 2);
  CHECK(lists_after(FakeServer::json(429, "{}", "Retry-After: 61\r\n"), 1) == 2);
}

TEST_CASE("pod feed: without the right to watch it lists each time") {
  Scene scene;
  scene.watch_reply =
      FakeServer::json(403, R"({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})");
  scene.read();
  scene.until([&] { return scene.watches == 1; });
  scene.until([&] {
    const int before = scene.lists;
    scene.read();
    return scene.lists > before;
  });
  CHECK(scene.blind == "");
}

TEST_CASE("pod feed: everything is listed again after a while") {
  Scene scene;
  scene.read();
  scene.until([&] { return scene.watches == 1; });
  scene.read(k_now + Seconds(899));
  CHECK(scene.lists == 1);
  scene.read(k_now + Seconds(900));
  CHECK(scene.lists == 2);
}

TEST_CASE("pod feed: pods just made are there at once, and what the watch said of them is kept") {
  Scene scene;
  scene.read();
  scene.feed.made(pod("c", 11).dump());
  CHECK(scene.feed.pods().at("c").pod->state == PodState::unschedulable);
  scene.until([&] { return scene.watches == 1; });
  scene.tell(line("MODIFIED", pod("c", 12, "Failed")));
  scene.until([&] { return scene.feed.pods().at("c").pod->state == PodState::failed; });
  scene.feed.made(pod("c", 11).dump());
  scene.feed.made("nonsense");
  CHECK(scene.feed.pods().at("c").pod->state == PodState::failed);
  CHECK(scene.feed.pods().size() == 3);
}

TEST_CASE("pod feed: an API that is gone is blindness, even after a good watch") {
  Scene scene;
  scene.read();
  scene.until([&] { return scene.watches == 1; });
  scene.calls.wind_up();  // no repetitions: the test need not wait for them
  scene.server.on_request = [](const FakeServer::Request&) { return FakeServer::Reply{"", true}; };
  scene.server.send(scene.stream, "no chunk\r\n");
  scene.until([&] {
    scene.read();
    return !scene.blind.empty();
  });
  CHECK(scene.blind.starts_with("list of pods: no answer from the API"));
}
