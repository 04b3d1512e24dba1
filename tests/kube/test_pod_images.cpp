#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include "lib/kube/pod_images.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::kube;
using Json = nlohmann::json;

namespace {

// An API server with one pod of two containers, whose admission and storage can be told to misbehave.
struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Client> client =
      Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
  PodImages images{*client, {"ns", "p"}};
  Json pod = {
      {"metadata", {{"name", "p"}, {"resourceVersion", "1"}}},
      {"spec",
       {{"containers",
         {{{"name", "pilot"}, {"image", "pilot:1"}}, {{"name", "payload-0"}, {"image", "pilot:1"}}}}}}};
  int writes = 0, version = 1;
  std::function<std::optional<FakeServer::Reply>(const FakeServer::Request&)> meddle;
  std::string mirror;
  bool tags_dropped = false;  // beside a digest

  Scene() {
    server.on_request = [this](const FakeServer::Request& request) {
      if (meddle)
        if (auto reply = meddle(request)) return *reply;
      return answer(request);
    };
  }
  FakeServer::Reply answer(const FakeServer::Request& request) {
    if (request.method == "GET" || store(request.body)) return FakeServer::json(200, pod.dump());
    return refusal("test failed");
  }
  static FakeServer::Reply refusal(const std::string& message) {
    return FakeServer::json(
        422, Json{{"kind", "Status"}, {"code", 422}, {"reason", "Invalid"}, {"message", message}}.dump());
  }
  bool store(const std::string& body) {
    try {
      pod = pod.patch(Json::parse(body));
    } catch (const Json::exception&) {
      return false;
    }
    std::string wanted = image();
    if (const auto at = wanted.find('@'); tags_dropped && at != std::string::npos)
      set(wanted = wanted.substr(0, wanted.find(':')) + wanted.substr(at));
    if (!wanted.starts_with(mirror)) set(mirror + wanted);
    ++writes;
    grow();
    return true;
  }
  // As every change of the pod does, the kubelet's of its status too.
  void grow() { pod["metadata"]["resourceVersion"] = std::to_string(++version); }
  std::string image() const { return pod["spec"]["containers"][1]["image"]; }
  void set(const std::string& image) { pod["spec"]["containers"][1]["image"] = image; }
  // The requests since the last change: "GET PATCH".
  std::string requests() {
    std::string words;
    for (const auto& request : server.requests) words += (words.empty() ? "" : " ") + request.method;
    server.requests.clear();
    return words;
  }
  Result<Pod> change(const std::string& image, Milliseconds patience = std::chrono::seconds(5),
                     const std::string& container = "payload-0", bool once = false) {
    std::optional<Result<Pod>> answer;
    const auto operation =
        images.change({container, image, once}, std::chrono::steady_clock::now() + patience,
                      [&](Result<Pod> got) { answer = std::move(got); });
    for (int i = 0; i < 10'000 && !answer; ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    return answer.value();
  }
};

}  // namespace

TEST_CASE("images: one request for a change, after a first look") {
  Scene s;
  CHECK(s.change("a:1").value().container("payload-0")->image == "a:1");
  CHECK(s.requests() == "GET PATCH");
  CHECK(s.change("b:1").ok());
  CHECK(s.requests() == "PATCH");
  CHECK(s.image() == "b:1");
}

TEST_CASE("images: a pod that was seen is not asked for") {
  Scene s;
  s.images.saw(parse_pod(s.pod.dump()).value());
  CHECK(s.change("a:1").ok());
  CHECK(s.requests() == "PATCH");
}

TEST_CASE("images: a sidecar's is changed among the init containers") {
  Scene s;
  s.pod["spec"]["initContainers"] = Json::parse(
      R"([{"name": "install", "image": "i:1"}, {"name": "beside", "image": "i:1", "restartPolicy": "Always"}])");
  CHECK(s.change("a:1", std::chrono::seconds(5), "beside").value().container("beside")->image == "a:1");
  CHECK(s.pod["spec"]["initContainers"][0]["image"] == "i:1");
  CHECK_FALSE(s.change("a:1", std::chrono::seconds(5), "install").ok());
}

TEST_CASE("images: an attempt that comes late, after another change, does nothing") {
  Scene s;
  std::string late;
  CHECK(s.change("a:1").ok());
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    late = request.body;
    return FakeServer::Reply{};  // on its way, and no answer
  };
  const auto lost = s.change("b:1", Milliseconds(50));
  CHECK_FALSE(Failure::of(lost.error()).rejected());
  s.meddle = {};
  CHECK(s.change("c:1").ok());
  CHECK_FALSE(s.store(late));
  CHECK(s.image() == "c:1");
}

TEST_CASE("images: nor where the image has come back meanwhile") {
  Scene s;
  std::string late;
  CHECK(s.change("a:1").ok());
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    late = request.body;
    return FakeServer::Reply{};
  };
  CHECK_FALSE(s.change("b:1", Milliseconds(50)).ok());
  s.meddle = {};
  CHECK(s.change("c:1").ok());
  CHECK(s.change("a:1").ok());
  CHECK_FALSE(s.store(late));
  CHECK(s.image() == "a:1");
}

TEST_CASE("images: nor where admission makes two names of their own the same one") {
  Scene s;
  s.tags_dropped = true;
  const std::string digest = "@sha256:" + std::string(64, '1');
  const auto once = [&](const std::string& image) {
    return s.change(image, std::chrono::seconds(5), "payload-0", true);
  };
  CHECK(once("a:g-1" + digest).ok());
  std::string late;
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    late = request.body;
    return FakeServer::Reply{};
  };
  CHECK_FALSE(s.change("b:1", Milliseconds(50)).ok());
  s.meddle = {};
  CHECK(s.change("b:1").ok());
  CHECK(once("a:g-2" + digest).ok());
  CHECK(s.image() == "a" + digest);
  CHECK_FALSE(s.store(late));
  CHECK(s.image() == "a" + digest);
}

TEST_CASE("images: an image that does not come back is changed whatever else has happened to the pod") {
  Scene s;
  CHECK(s.change("a:1").ok());
  s.grow();
  s.requests();
  CHECK(s.change("b:g-1", std::chrono::seconds(5), "payload-0", true).ok());
  CHECK(s.requests() == "PATCH GET PATCH");
  s.grow();
  CHECK(s.change("c:1").ok());
  CHECK(s.requests() == "PATCH");
  s.grow();
  SUBCASE("unless the pod has been seen since") {
    s.images.saw(parse_pod(s.pod.dump()).value());
    Pod older = parse_pod(s.pod.dump()).value();
    older.resource_version = "1";
    s.images.saw(older);
    CHECK(s.change("a:1").ok());
    CHECK(s.requests() == "PATCH");
  }
  SUBCASE("which one that may come back is not") {
    CHECK(s.change("a:1").ok());
    CHECK(s.requests() == "PATCH GET PATCH");
  }
}

TEST_CASE("images: what a lost answer has changed is found, and changed on from there") {
  Scene s;
  CHECK(s.change("a:1").ok());
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    s.meddle = {};
    s.store(request.body);
    return FakeServer::Reply{"", true};
  };
  s.requests();
  SUBCASE("by this change") {
    CHECK(s.change("b:1").ok());
    CHECK(s.requests() == "PATCH PATCH GET PATCH");
  }
  SUBCASE("and by admission, to another name") {
    s.mirror = "mirror/";
    CHECK(s.change("b:1").value().container("payload-0")->image == "mirror/b:1");
    CHECK(s.requests() == "PATCH PATCH GET PATCH");
  }
  SUBCASE("by the one before") {
    s.meddle = {};
    s.set("somebody-else:1");
    s.grow();
    CHECK(s.change("b:1").ok());
    CHECK(s.requests() == "PATCH GET PATCH");
  }
}

TEST_CASE("images: a name that the API does not take is refused, once it is known that nothing has changed") {
  Scene s;
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "GET") return std::nullopt;
    return Scene::refusal("must not have leading or trailing whitespace");
  };
  auto failure = Failure::of(s.change(" a:1").error());
  CHECK(failure.status == 422);
  CHECK(failure.message == "must not have leading or trailing whitespace");
  CHECK(failure.rejected());
  CHECK(s.requests() == "GET PATCH GET");
}

TEST_CASE("images: where nobody tells what a refusal was of, nothing is claimed") {
  Scene s;
  CHECK(s.change("a:1").ok());
  bool patched = false;
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "PATCH") patched = true;
    if (request.method == "PATCH") return Scene::refusal("test failed");
    return FakeServer::json(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})");
  };
  const auto failure = Failure::of(s.change("b:1").error());
  CHECK(patched);
  CHECK(failure.status == 403);
  CHECK_FALSE(failure.rejected());
}

TEST_CASE("images: somebody who changes it again and again is not fought beyond the deadline") {
  Scene s;
  int other = 0;
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "PATCH") s.set("other:" + std::to_string(++other));
    return std::nullopt;
  };
  const auto failure = Failure::of(s.change("a:1", Milliseconds(200)).error());
  CHECK_FALSE(failure.rejected());
  CHECK(other > 1);
  CHECK(s.writes == 0);
}

TEST_CASE("images: a container that the pod does not have is an error that names it") {
  Scene s;
  const auto answer = s.change("a:1", std::chrono::seconds(5), "payload-7");
  CHECK(answer.error().message() == "the pod p has no container payload-7");
}

TEST_CASE("images: an answer that lacks the container is taken as it is") {
  Scene s;
  s.images.saw(parse_pod(s.pod.dump()).value());
  s.meddle = [](const FakeServer::Request&) {
    return FakeServer::json(200, R"({"spec":{"containers":[]}})");
  };
  CHECK(s.change("a:g-1", std::chrono::seconds(5), "payload-0", true)->container("payload-0") == nullptr);
}

TEST_CASE("images: a name that is refused, of a container whose image does not come back") {
  Scene s;
  CHECK(s.change("b:g-1", std::chrono::seconds(5), "payload-0", true).ok());
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "GET") return std::nullopt;
    return Scene::refusal("no name");
  };
  s.requests();
  CHECK(Failure::of(s.change(" a:1", Milliseconds(300)).error()).rejected());
  CHECK(s.requests() == "PATCH GET");
}

TEST_CASE("images: a container that is gone when the pod is looked at again") {
  Scene s;
  CHECK(s.change("b:1").ok());
  s.meddle = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "GET")
      return FakeServer::json(200, R"({"spec":{"containers":[{"name":"pilot"}]}})");
    return Scene::refusal("test failed");
  };
  CHECK(s.change("a:1").error().message() == "the pod p has no container payload-0");
}

TEST_CASE("images: a pod whose version is no number is the newest that was seen") {
  Scene s;
  s.images.saw(parse_pod(s.pod.dump()).value());
  Pod odd = parse_pod(s.pod.dump()).value();
  odd.resource_version = "x";
  odd.containers[1].image = "other:1";
  s.images.saw(odd);
  CHECK(s.change("a:1").ok());
  CHECK(s.server.requests[0].body.find("other:1") != std::string::npos);
}
