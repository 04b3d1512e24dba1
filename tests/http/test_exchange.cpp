#include "lib/http/exchange.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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
  void start() {
    exchange = std::make_unique<Exchange>(
        *transport, plan, [this](Result<Response> got, const std::string&) { answer = std::move(got); });
  }
  template <typename Condition>
  void run_until(Condition condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(condition());
  }
  void run() {
    start();
    run_until([this] { return answer.has_value(); });
  }
  // One answer after the other, and the last for ever.
  void answers(std::vector<FakeServer::Reply> replies) {
    server.on_request = [replies = std::move(replies),
                         next = std::size_t{0}](const FakeServer::Request&) mutable {
      return replies[std::min(next++, replies.size() - 1)];
    };
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

TEST_CASE("exchange: which answers lead elsewhere") {
  struct Row {
    int status;
    bool leads;
  };
  for (const auto& row : {Row{299, false}, Row{300, true}, Row{302, true}, Row{304, false}, Row{308, true},
                          Row{399, true}, Row{400, false}}) {
    CAPTURE(row.status);
    Scene scene;
    scene.plan.redirects = 1;
    scene.server.on_request = [status = row.status](const FakeServer::Request& request) {
      return request.target == "/b" ? FakeServer::json(200, "{}")
                                    : FakeServer::json(status, "", "Location: /b\r\n");
    };
    scene.run();
    CHECK(scene.server.requests.size() == (row.leads ? 2 : 1));
    CHECK(scene.answer->ok() == (row.leads || row.status == 299));
  }
}

TEST_CASE("exchange: a redirect that is not followed, or leads nowhere, is the answer") {
  Scene scene;
  SUBCASE("none is followed") {
    scene.answers({redirect("/b")});
  }
  SUBCASE("without a Location") {
    scene.plan.redirects = 1;
    scene.answers({FakeServer::json(307, "{}")});
  }
  scene.run();
  CHECK(scene.failure().status == 307);
}

TEST_CASE("exchange: each attempt follows as many redirects") {
  Scene scene;
  scene.plan.redirects = 1;
  scene.answers({redirect("/b"), FakeServer::json(503, "{}"), redirect("/b"), FakeServer::json(200, "{}")});
  scene.run();
  CHECK(scene.answer->ok());
}

TEST_CASE("exchange: a token that has expired is asked for anew once, and nothing else that is refused") {
  Scene scene;
  SUBCASE("once is enough") {
    scene.answers({FakeServer::json(401, "{}"), FakeServer::json(200, "{}")});
    scene.run();
    CHECK(scene.answer->ok());
  }
  SUBCASE("once is not") {
    scene.answers({FakeServer::json(401, "{}")});
    scene.run();
    CHECK(scene.attempts == 2);
    CHECK(scene.failure().status == 401);
  }
  SUBCASE("refused") {
    scene.answers({FakeServer::json(403, "{}")});
    scene.run();
    CHECK(scene.attempts == 1);
  }
}

TEST_CASE("exchange: an earlier attempt may have had an effect, which a later refusal does not undo") {
  Scene scene;
  scene.request.method = "PATCH";
  SUBCASE("cut off") {
    scene.answers({{"", true}, FakeServer::json(403, "{}")});
    scene.run();
    CHECK_FALSE(scene.failure().rejected());
  }
  SUBCASE("refused, too") {
    scene.answers({FakeServer::json(429, "{}"), FakeServer::json(403, "{}")});
    scene.run();
    CHECK(scene.failure().rejected());
  }
  CHECK(scene.attempts == 2);
}

TEST_CASE("exchange: what is tried is told, with the time that it took") {
  Scene scene;
  scene.request.method = "PATCH";
  std::vector<std::pair<std::string, int>> told;
  scene.plan.attempted = [&](const std::string& method, int status, std::chrono::duration<double> took) {
    told.emplace_back(method, status);
    CHECK(took.count() >= 0);
    CHECK(took.count() < 5);
  };
  scene.plan.hopeless = [](const Failure&) { return false; };
  scene.answers({{"", true}, FakeServer::json(503, "{}"), FakeServer::json(201, "{}")});
  scene.run();
  CHECK(scene.answer->ok());
  CHECK(told == std::vector<std::pair<std::string, int>>{{"PATCH", 0}, {"PATCH", 503}, {"PATCH", 201}});
}

TEST_CASE("exchange: a good answer is what its judge takes for one") {
  Scene scene;
  scene.plan.judge = [](const Response& response) -> std::optional<Failure> {
    if (response.status == 404) return std::nullopt;
    return Failure{.kind = Failure::Kind::nonsense};
  };
  scene.answers({FakeServer::json(200, "{}"), FakeServer::json(404, "{}")});
  scene.run();
  CHECK(scene.attempts == 2);
  CHECK(scene.answer->ok());
}

TEST_CASE("exchange: a pause that would outlast the deadline is not waited for") {
  Scene scene;
  scene.answers({FakeServer::json(503, "{}", "Retry-After: 30\r\n")});
  const auto began = std::chrono::steady_clock::now();
  scene.run();
  CHECK(scene.attempts == 1);
  CHECK(scene.failure().status == 503);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
}

TEST_CASE("exchange: there is one attempt after the deadline, and no second one") {
  Scene scene;
  scene.answers({FakeServer::json(503, "{}")});
  SUBCASE("it was over before the first") {
    scene.plan.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    scene.run();
    CHECK(scene.attempts == 1);
  }
  SUBCASE("the process stood still before the second") {
    scene.plan.deadline = std::chrono::steady_clock::now() + Milliseconds(400);
    scene.start();
    scene.run_until([&] { return scene.attempts == 1; });
    while (std::chrono::steady_clock::now() < scene.plan.deadline) {
    }
    scene.run_until([&] { return scene.answer.has_value(); });
    CHECK(scene.attempts == 1);
    CHECK(scene.failure().status == 503);
  }
}

TEST_CASE("exchange: wound up between attempts it ends at once, with what it knows") {
  Scene scene;
  scene.answers({FakeServer::json(503, "{}", "Retry-After: 3\r\n")});
  scene.start();
  scene.run_until([&] { return scene.attempts == 1; });
  scene.exchange->wind_up();
  const auto began = std::chrono::steady_clock::now();
  scene.run_until([&] { return scene.answer.has_value(); });
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(2));
  CHECK(scene.attempts == 1);
  CHECK(scene.failure().status == 503);
  // And again it changes nothing.
  scene.exchange->wind_up();
  REQUIRE(scene.loop.run_once(Milliseconds(0)).ok());
}

TEST_CASE("exchange: wound up between attempts it makes none later") {
  Scene scene;
  scene.answers({FakeServer::json(503, "{}")});
  scene.start();
  scene.run_until([&] { return scene.attempts == 1; });
  scene.exchange->wind_up();
  scene.run_until([&] { return scene.answer.has_value(); });
  bool later = false;
  scene.loop.after(Milliseconds(1'500), [&] { later = true; });
  scene.run_until([&] { return later; });
  CHECK(scene.server.requests.size() == 1);
}

TEST_CASE("exchange: wound up in its second attempt it takes the answer of that") {
  Scene scene;
  scene.server.on_request = [&](const FakeServer::Request&) {
    if (scene.server.requests.size() == 1) return FakeServer::json(503, "{}");
    scene.exchange->wind_up();
    return FakeServer::json(200, "{}");
  };
  scene.run();
  CHECK(scene.answer->ok());
}

TEST_CASE("exchange: dropped while it waits, it is never heard of again") {
  Scene scene;
  scene.answers({FakeServer::json(503, "{}")});
  scene.start();
  scene.run_until([&] { return scene.attempts == 1; });
  scene.exchange.reset();
  const auto until = std::chrono::steady_clock::now() + Milliseconds(150);  // longer than the pause
  while (std::chrono::steady_clock::now() < until) REQUIRE(scene.loop.run_once(Milliseconds(10)).ok());
  CHECK(scene.server.requests.size() == 1);
  CHECK_FALSE(scene.answer.has_value());
}
