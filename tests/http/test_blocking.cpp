#include "lib/http/blocking.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using kube::FakeServer;

namespace {

struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};

  Result<http::Response> perform(http::Request request, const http::Callbacks& callbacks = {}) {
    std::atomic<bool> over = false;
    Result<http::Response> result = error("not yet");
    std::thread thread([&] {
      result = http::perform(std::move(request), callbacks);
      over = true;
    });
    while (!over) REQUIRE(loop.run_once(Milliseconds(5)).ok());
    thread.join();
    return result;
  }
  http::Request request() {
    http::Request request;
    request.url = "http://x/y";
    request.unix_socket = server.socket();
    return request;
  }
};

}  // namespace

TEST_CASE("blocking: a request is waited for, its body sent, its answer kept or handed over") {
  Scene scene;
  scene.server.on_request = [](const FakeServer::Request& request) {
    return FakeServer::json(request.target == "/y" ? 200 : 404, request.method + request.body);
  };
  auto request = scene.request();
  request.method = "POST";
  request.body = "text";
  const auto answer = scene.perform(request);
  CHECK(answer.value().body == "POSTtext");
  std::string taken;
  const http::Callbacks taking{{}, [&](std::string_view data) {
                                 taken += data;
                                 return true;
                               }};
  CHECK(scene.perform(request, taking).value().body.empty());
  CHECK(taken == "POSTtext");
  request.url = "http://x/z";
  CHECK(scene.perform(request, taking).value().body == "POSTtext");  // an error's words are no data
  CHECK(taken == "POSTtext");
}

TEST_CASE("blocking: nobody there, and an end before the answer") {
  Scene scene;
  auto request = scene.request();
  request.unix_socket += ".not";
  CHECK(scene.perform(request).error().fact<http::Lost>()->why == http::Lost::Why::connect);
  scene.server.on_request = [](const FakeServer::Request&) { return FakeServer::Reply{}; };
  request = scene.request();
  request.timeout = Milliseconds(50);
  CHECK(scene.perform(request).error().fact<http::Lost>()->why == http::Lost::Why::timeout);
  const http::Callbacks over{[] { return true; }, {}};
  CHECK(scene.perform(scene.request(), over).error().fact<http::Lost>()->why == http::Lost::Why::cancelled);
}
