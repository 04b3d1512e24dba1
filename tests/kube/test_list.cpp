#include "lib/kube/list.hpp"

#include <doctest/doctest.h>

#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::kube;
using Json = nlohmann::json;

namespace {

std::string page(const std::vector<int>& numbers, const std::string& more) {
  Json list = {{"metadata", {{"resourceVersion", "9"}, {"continue", more}}}, {"items", Json::array()}};
  for (const int number : numbers) list["items"].push_back({{"number", number}});
  return list.dump();
}
FakeServer::Reply expired() {
  return FakeServer::json(
      410,
      R"({"kind":"Status","code":410,"reason":"Expired","message":"the continue parameter is too old"})");
}

struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Client> client =
      Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
  std::optional<Calls> calls{std::in_place, *client};
  std::vector<int> seen;
  int begun = 0;
  std::optional<Result<std::string>> done;

  void read(const std::string& selector = {}) {
    read_list(*calls, {.path = "/pods", .selector = selector, .page = 2},
              {[this] {
                 ++begun;
                 seen.clear();
               },
               [this](const Json& object) { seen.push_back(object["number"].get<int>()); },
               [this](Result<std::string> version) { done = std::move(version); }});
  }
  void run_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 10'000 && !condition(); ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(condition());
  }
  void run() {
    run_until([this] { return done.has_value(); });
  }
};

}  // namespace

TEST_CASE("list: page by page, with the selector in each question") {
  Scene s;
  s.server.on_request = [&](const FakeServer::Request& request) {
    const bool first = request.target.find("continue=") == std::string::npos;
    return FakeServer::json(200, first ? page({1, 2}, "a/b") : page({3}, ""));
  };
  s.read("labelSelector=x");
  s.run();
  CHECK(s.done->value() == "9");
  CHECK(s.seen == std::vector{1, 2, 3});
  CHECK(s.begun == 1);
  REQUIRE(s.server.requests.size() == 2);
  CHECK(s.server.requests[0].target == "/pods?limit=2&labelSelector=x");
  CHECK(s.server.requests[1].target == "/pods?limit=2&labelSelector=x&continue=a%2Fb");
}

TEST_CASE("list: without a selector everything is asked for, and a list may lack its metadata") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(200, R"({"items": [{"number": 7}]})");
  };
  s.read();
  s.run();
  CHECK(s.done->value() == "");
  CHECK(s.seen == std::vector{7});
  CHECK(s.server.requests[0].target == "/pods?limit=2");
}

TEST_CASE("list: what is given is what the list holds, and nothing else of the page, whatever it is called") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(200, R"({"metadata": {"resourceVersion": "9", "items": {"number": 5}},
      "items": [{"number": 1, "items": {"number": 6}}, {"number": 2}], "later": {"items": {"number": 7}}})");
  };
  s.read();
  s.run();
  CHECK(s.seen == std::vector{1, 2});
  CHECK(s.done->value() == "9");
}

TEST_CASE("list: an item that is no object is given too, for whoever reads it to refuse") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(200, R"({"metadata": {"items": {}}, "items": [7]})");
  };
  std::vector<std::string> seen;
  read_list(*s.calls, {.path = "/pods"},
            {[] {}, [&](const Json& object) { seen.push_back(object.dump()); },
             [&](Result<std::string> version) { s.done = std::move(version); }});
  s.run();
  CHECK(seen == std::vector<std::string>{"7"});
}

TEST_CASE("list: of which the server has forgotten the rest, it is read once more from its beginning") {
  Scene s;
  int refusals = 0, wanted = 1;
  s.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("continue=") == std::string::npos)
      return FakeServer::json(200, page({1, 2}, "rest"));
    return ++refusals <= wanted ? expired() : FakeServer::json(200, page({3}, ""));
  };
  SUBCASE("once is enough") {
    s.read();
    s.run();
    CHECK(s.done->ok());
    CHECK(s.begun == 2);
    CHECK(s.seen == std::vector{1, 2, 3});
  }
  SUBCASE("but not for ever") {
    wanted = 2;
    s.read();
    s.run();
    CHECK(Failure::of(s.done->error()).status == 410);
    CHECK(s.begun == 2);
  }
}

TEST_CASE("list: an answer that is none, and one that the server refuses, are told") {
  for (const char* body : {"[]", "{}", R"({"items": 7})", "<html>"}) {
    Scene s;
    s.server.on_request = [&](const FakeServer::Request&) { return FakeServer::json(200, body); };
    s.read();
    s.run();
    CHECK(s.done->error().message() == "the answer is no list");
  }
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})");
  };
  s.read();
  s.run();
  CHECK(Failure::of(s.done->error()).status == 403);
  CHECK(s.begun == 1);
}

TEST_CASE("calls: what is dropped calls nobody any more") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(200, page({1}, "")); };
  bool late = false, later = false;
  s.read();
  s.calls->later([&] { late = true; });
  s.calls.reset();
  Calls others(*s.client);
  std::optional<Result<std::string>> answer;
  others.later([&] { later = true; });
  others.call({.path = "/x"}, [&](Result<std::string> got) { answer = std::move(got); });
  s.run_until([&] { return answer.has_value() && later; });
  CHECK_FALSE(late);
  CHECK_FALSE(s.done.has_value());
}

TEST_CASE("calls: at the end nothing is tried again, neither what runs nor what comes after") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(503, "busy"); };
  std::optional<Result<std::string>> first, second;
  s.calls->call({.path = "/x"}, [&](Result<std::string> got) { first = std::move(got); });
  s.calls->wind_up();
  s.calls->call({.path = "/y"}, [&](Result<std::string> got) { second = std::move(got); });
  s.run_until([&] { return first.has_value() && second.has_value(); });
  CHECK(Failure::of(first->error()).status == 503);
  CHECK(s.server.requests.size() == 2);
}

TEST_CASE("calls: one that is over keeps nothing of it") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(200, "{}"); };
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  bool done = false;
  s.calls->call({.path = "/x", .check = [held](const std::string&) { return Result<void>(); }},
                [&done](const Result<std::string>&) { done = true; });
  held.reset();
  s.run_until([&] { return done; });
  CHECK(seen.expired());
}
