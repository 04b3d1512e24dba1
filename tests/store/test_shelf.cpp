#include "store/shelf.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "lib/base/file.hpp"
#include "store/digest.hpp"
#include "store/layout.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::store;
using kube::FakeServer;

namespace {

const std::string k_digest = "sha256:" + std::string(64, 'd');

Blob blob_of(const std::string& text) {
  Digest digest;
  digest.add(text);
  return {digest.text(), text.size()};
}

// A registry in this thread; the shelf asks it in another.
struct Scene {
  Loop loop = Loop::create().value();
  FakeServer registry{loop};
  std::map<std::string, std::string> blobs, manifests;
  bool wants_token = false, removes = true, full = false;
  bool stream_fails = false, stream_hangs = false;
  std::string streamed, taken_back;
  int tokens = 0, elsewhere = 0;
  int known = 200;  // what it says of a blob that it has
  std::string uploads = "/upload/1?state=x";
  std::unique_ptr<RegistryShelf> shelf;

  explicit Scene(Milliseconds longest_stall = Milliseconds(10'000)) {
    registry.on_request = [this](const FakeServer::Request& request) { return answer(request); };
    REQUIRE(replace_file(registry.folder() + "/config.json", R"({"auths":{"reg.test":{"auth":"c2VjcmV0"}}})",
                         0600, Durable::no));
    auto opened = registry::Repository::open({.name = "reg.test/files",
                                              .credentials_file = registry.folder() + "/config.json",
                                              .ca_file = {},
                                              .plain = true,
                                              .unix_socket = registry.socket()});
    shelf = std::make_unique<RegistryShelf>(std::move(opened.value()), "reg.test/files", longest_stall);
  }
  FakeServer::Reply answer(const FakeServer::Request& request) {
    const auto& target = request.target;
    if (target.starts_with("/token")) {
      ++tokens;
      CHECK(request.headers.find("Authorization: Basic c2VjcmV0\r\n") != std::string::npos);
      CHECK(target.find("scope=repository%3afiles%3apull%2cpush") != std::string::npos);
      return FakeServer::json(200, R"({"token":"abc"})");
    }
    const bool own = request.headers.find("Host: reg.test\r\n") != std::string::npos;
    if (wants_token && own && request.headers.find("Authorization: Bearer abc\r\n") == std::string::npos)
      return FakeServer::json(401, "",
                              "WWW-Authenticate: Bearer realm=\"http://reg.test/token\",service=\"r\"\r\n");
    const auto last = target.substr(target.rfind('/') + 1);
    if (target.find("/manifests/") != std::string::npos) {
      if (request.method == "PUT") {
        manifests[last] = request.body;
        return FakeServer::json(201, "");
      }
      if (request.method == "DELETE") return FakeServer::json(removes ? 202 : 405, "");
      return manifests.contains(last)
                 ? FakeServer::json(200, "", "Docker-Content-Digest: " + k_digest + "\r\n")
                 : FakeServer::json(404, "");
    }
    if (request.method == "PATCH") {
      if (stream_hangs) return {};
      if (stream_fails) return FakeServer::json(503, "");
      streamed += request.body;
      return FakeServer::json(202, "", "Location: /upload/2\r\n");
    }
    if (request.method == "DELETE") {
      taken_back += target + " ";
      return FakeServer::json(204, "");
    }
    if (request.method == "HEAD")
      return FakeServer::json(blobs.contains(last) ? known : 404, "", "Location: http://other.test/blob\r\n");
    if (request.method == "POST")
      return full ? FakeServer::json(507, R"({"errors":[{"code":"DENIED","message":"no room"}]})")
                  : FakeServer::json(202, "", "Location: " + uploads + "\r\n");
    const auto at = target.find("digest=sha256%3a");
    CHECK_MESSAGE(at != std::string::npos, target);
    if (at == std::string::npos) return FakeServer::json(400, "");
    if (request.headers.find("Host: other.test\r\n") != std::string::npos) {
      ++elsewhere;
      CHECK(request.headers.find("Authorization") == std::string::npos);
    }
    blobs["sha256:" + target.substr(at + 16)] = target.starts_with("/upload/2") ? streamed : request.body;
    return FakeServer::json(201, "");
  }
  // Runs it in a thread, while the registry answers.
  template <typename Function>
  auto with(const Function& function) {
    std::optional<decltype(function())> result;
    std::atomic<bool> done = false;
    std::thread thread([&] {
      result = function();
      done = true;
    });
    while (!done) REQUIRE(loop.run_once(Milliseconds(5)));
    thread.join();
    return *result;
  }
};

// An image's layout, with this layer.
Blob make_layout(const std::string& folder, const std::string& text) {
  Layout layout(folder, "");
  REQUIRE(layout.prepare());
  REQUIRE(layout.layer(text));
  auto layer = blob_of(text);
  const auto config = blob_of("{}");
  REQUIRE(layout.layer_ended(layer));
  REQUIRE(layout.put(config, "{}"));
  const std::string manifest = image_manifest(config, {layer});
  REQUIRE(layout.put(blob_of(manifest), manifest));
  REQUIRE(layout.finish(blob_of(manifest)));
  return layer;
}

}  // namespace

TEST_CASE("registry shelf: an image goes there part by part, and what is there is not sent again") {
  Scene scene;
  const auto folder = scene.registry.folder() + "/layout";
  const auto layer = make_layout(folder, "layer");
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  CHECK(scene.blobs[layer.digest] == "layer");
  CHECK(scene.blobs.size() == 2);
  CHECK(scene.manifests["key"] == image_manifest(blob_of("{}"), {layer}));
  const auto asked = scene.registry.requests.size();
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  CHECK(scene.registry.requests.size() == asked + 3);  // two looks, and the manifest
}

TEST_CASE(
    "registry shelf: a registry that has its blobs elsewhere leads there, which says that it has them") {
  Scene scene;
  const auto folder = scene.registry.folder() + "/layout";
  make_layout(folder, "layer");
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  for (const int status : {301, 302, 303, 307, 308}) {
    CAPTURE(status);
    scene.known = status;
    const auto asked = scene.registry.requests.size();
    REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
    CHECK(scene.registry.requests.size() == asked + 3);  // two looks, and the manifest
  }
  scene.known = 304;
  CHECK_FALSE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
}

TEST_CASE("registry shelf: a layer goes there while it is made, and is not sent again") {
  Scene scene;
  scene.wants_token = true;
  const auto folder = scene.registry.folder() + "/layout";
  const std::string text(3'000'000, 'x');
  const auto layer = make_layout(folder, text);
  REQUIRE(scene.with([&]() -> Result<void> {
    const auto stream = scene.shelf->stream();
    REQUIRE(stream);
    for (std::size_t at = 0; at < text.size(); at += 100'000)
      TRY(stream->add(std::string_view(text).substr(at, 100'000)));
    stream->end();
    return stream->commit(layer.digest);
  }));
  CHECK(scene.blobs[layer.digest] == text);
  CHECK(scene.taken_back.empty());
  REQUIRE(
      std::filesystem::remove(folder + "/blobs/sha256/" + layer.digest.substr(7)));  // it is not asked for
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  CHECK(scene.blobs.size() == 2);
  CHECK(std::ranges::count(scene.registry.requests, "PUT", &FakeServer::Request::method) == 3);
}

TEST_CASE("registry shelf: a layer that is not committed leaves nothing there") {
  Scene scene;
  REQUIRE(scene.with([&]() -> Result<void> {
    const auto stream = scene.shelf->stream();
    return stream->add("half of it");
  }));
  CHECK(scene.blobs.empty());
  CHECK(scene.taken_back.starts_with("/upload/"));  // the first place, or where it had come to
}

TEST_CASE("registry shelf: where a registry takes no stream the layer is sent once it is made") {
  Scene scene;
  scene.stream_fails = true;
  const auto folder = scene.registry.folder() + "/layout";
  const auto layer = make_layout(folder, "layer");
  const auto streamed = scene.with([&]() -> Result<void> {
    const auto stream = scene.shelf->stream();
    TRY(stream->add("layer"));
    return stream->commit(layer.digest);
  });
  CHECK_FALSE(streamed);
  CHECK(scene.taken_back == "/upload/1?state=x ");
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  CHECK(scene.blobs[layer.digest] == "layer");
  scene.full = true;
  CHECK(scene.with([&] { return scene.shelf->stream() == nullptr; }));
}

TEST_CASE("registry shelf: one that takes a stream and never answers holds up nobody for long") {
  Scene scene{Milliseconds(100)};
  scene.stream_hangs = true;
  const auto began = std::chrono::steady_clock::now();
  CHECK_FALSE(scene.with([&]() -> Result<void> {
    const auto stream = scene.shelf->stream();
    TRY(stream->add("layer"));
    return stream->commit(k_digest);
  }));
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  CHECK(scene.taken_back == "/upload/1?state=x ");
}

TEST_CASE("registry shelf: an image is found by its tag and its digest") {
  Scene scene;
  CHECK_FALSE(scene.with([&] { return scene.shelf->find("key"); }).value());
  CHECK_FALSE(scene.with([&] { return scene.shelf->has("reg.test/files@" + k_digest); }).value());
  scene.manifests["key"] = scene.manifests[k_digest] = "{}";
  CHECK(scene.with([&] { return scene.shelf->find("key"); }).value() == "reg.test/files@" + k_digest);
  CHECK(scene.with([&] { return scene.shelf->has("reg.test/files@" + k_digest); }).value());
}

TEST_CASE("registry shelf: a registry that wants a token gets one, once") {
  Scene scene;
  scene.wants_token = true;
  const auto folder = scene.registry.folder() + "/layout";
  make_layout(folder, "layer");
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  CHECK(scene.tokens == 1);
  CHECK(scene.manifests.contains("key"));
}

TEST_CASE("attack: a registry that leads elsewhere gets its credentials nowhere") {
  Scene scene;
  scene.wants_token = true;
  scene.uploads = "http://other.test/upload/1?state=x";
  const auto folder = scene.registry.folder() + "/layout";
  make_layout(folder, "layer");
  REQUIRE(scene.with([&] { return scene.shelf->put(folder, "key"); }));
  CHECK(scene.elsewhere == 2);
}

TEST_CASE("registry shelf: its words come back, and leave no manifest") {
  Scene scene;
  scene.full = true;
  const auto folder = scene.registry.folder() + "/layout";
  make_layout(folder, "layer");
  const auto put = scene.with([&] { return scene.shelf->put(folder, "key"); });
  REQUIRE_FALSE(put);
  CHECK(put.error().message() == "the registry: 507 DENIED: no room");
  CHECK(scene.manifests.empty());
}

TEST_CASE("registry shelf: one that removes nothing is no failure") {
  Scene scene;
  const std::string image = "reg.test/files@" + k_digest;
  CHECK(scene.with([&] { return scene.shelf->remove(image, "key"); }));
  scene.removes = false;
  CHECK(scene.with([&] { return scene.shelf->remove(image, "key"); }));
}
