#include "lib/http/exchange.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::http;
using kube::FakeServer;

namespace {

struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Transport> transport = Transport::create(loop).value();
  std::unique_ptr<Exchange> exchange;
  std::optional<Result<Response>> answer;
  Request request;
  Plan plan;
  int attempts = 0;

  Scene() {
    request.url = "http://one.test/a";
    request.unix_socket = server.socket();
    plan.request = [this] { return request; };
    plan.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    plan.attempted = [this](const std::string&, int, std::chrono::duration<double>) { ++attempts; };
  }
  void run() {
    exchange = std::make_unique<Exchange>(
        *transport, plan, [this](Result<Response> got, const std::string&) { answer = std::move(got); });
    for (int i = 0; i < 1000 && !answer; ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(answer.has_value());
  }
  Failure failure() const { return Failure::of(answer->error()); }
};

FakeServer::Reply redirect(const std::string& location) {
  return {"HTTP/1.1 307 X\r\nContent-Length: 0\r\nLocation: " + location + "\r\n\r\n"};
}

}  // namespace

TEST_CASE("exchange: what was never sent cannot have had an effect") {
  Scene scene;
  scene.request.method = "PATCH";
  scene.plan.deadline = std::chrono::steady_clock::now() + Milliseconds(200);
  SUBCASE("nobody listens") {
    scene.request.unix_socket += ".not";
    scene.run();
    CHECK(scene.attempts > 1);
    CHECK(scene.failure().lost.why == Lost::Why::connect);
    CHECK(scene.failure().rejected());
  }
  SUBCASE("closed after it was sent") {
    scene.server.on_request = [](const FakeServer::Request&) { return FakeServer::Reply{"", true}; };
    scene.run();
    CHECK_FALSE(scene.failure().rejected());
  }
}

TEST_CASE("exchange: redirects are followed as told, and credentials stay with their origin") {
  Scene scene;
  scene.request.authorization = "Bearer secret";
  scene.plan.redirects = 2;
  std::vector<std::string> seen;
  scene.server.on_request = [&](const FakeServer::Request& request) {
    seen.push_back(request.target);
    const bool shown = request.headers.find("Authorization: Bearer secret") != std::string::npos;
    CHECK(shown == (request.target == "/a" || request.target == "/b"));
    if (request.target == "/a") return redirect("/b");
    if (request.target == "/b") return redirect("http://two.test/c");
    return FakeServer::json(200, "{}");
  };
  SUBCASE("followed") {
    scene.run();
    CHECK(scene.answer->ok());
    CHECK(seen == std::vector<std::string>{"/a", "/b", "/c"});
  }
  SUBCASE("objected to") {
    scene.plan.may_follow = [](const Url& next) -> Result<void> {
      if (next.authority() == "two.test") return error("not there");
      return {};
    };
    scene.run();
    CHECK(scene.answer->error().message() == "not there");
    CHECK(seen.size() == 2);
  }
  SUBCASE("too often") {
    scene.plan.redirects = 1;
    scene.run();
    CHECK(scene.answer->error().message() == "http://one.test/b redirects too often");
  }
}

TEST_CASE("exchange: wound up, it repeats nothing, and a single attempt is one") {
  Scene scene;
  scene.server.on_request = [&](const FakeServer::Request&) {
    scene.exchange->wind_up();
    return FakeServer::json(503, "{}");
  };
  SUBCASE("wound up") {}
  SUBCASE("told to be one") {
    scene.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(503, "{}"); };
    scene.plan.repeat = Plan::Repeat::never;
  }
  scene.run();
  CHECK(scene.attempts == 1);
  CHECK(scene.failure().status == 503);
}

TEST_CASE("exchange: an answer that is too long is lost, and worth no second attempt where it is said so") {
  Scene scene;
  scene.request.longest_body = 10;
  scene.plan.hopeless = [](const Failure& failure) { return failure.lost.why == Lost::Why::too_long; };
  scene.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(200, R"({"a": "long answer"})");
  };
  scene.run();
  CHECK(scene.attempts == 1);
  CHECK(scene.failure().lost.why == Lost::Why::too_long);
}
