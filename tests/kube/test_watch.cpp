#include "lib/kube/watch.hpp"

#include <doctest/doctest.h>

#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::kube;

namespace {

struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Client> client =
      Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
  std::unique_ptr<Watch> watch;
  std::vector<std::string> seen;
  std::optional<Failure> lost;

  Watch::Handlers handlers() {
    return {[this](const nlohmann::json& object) { seen.push_back("changed " + object.dump()); },
            [this](const nlohmann::json& object) { seen.push_back("deleted " + object.dump()); },
            [this](const Failure& failure) { lost = failure; }};
  }
  void begin(std::chrono::seconds limit = std::chrono::seconds(0)) {
    watch =
        std::make_unique<Watch>(*client, Watch::Source{"/pods", "labelSelector=x", "5", limit}, handlers());
  }
  void run_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 10'000 && !condition(); ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(condition());
  }
  // What one stream that begins so ends with.
  Failure lost_by(const std::string& text) {
    server.on_request = [text](const FakeServer::Request&) {
      auto reply = FakeServer::stream();
      reply.bytes += FakeServer::chunk(text);
      return reply;
    };
    lost.reset();
    begin();
    run_until([this] { return lost.has_value(); });
    return *lost;
  }
};

constexpr const char* k_ended = "0\r\n\r\n";

}  // namespace

TEST_CASE("watch: a list of pods is followed by its selector, with a limit for each stream") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::stream(); };
  s.begin(std::chrono::seconds(300));
  s.run_until([&] { return s.server.requests.size() == 1; });
  CHECK(s.server.requests[0].target ==
        "/pods?watch=true&allowWatchBookmarks=true&labelSelector=x&resourceVersion=5&timeoutSeconds=300");
}

TEST_CASE("watch: a bookmark and an object without a version change what is asked for next as they should") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::stream(); };
  s.begin();
  s.run_until([&] { return s.server.requests.size() == 1; });
  s.server.send(FakeServer::chunk(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}})"
                                  "\n\n"
                                  R"({"type":"MODIFIED","object":{}})"
                                  "\n"
                                  R"({"type":"DELETED","object":{"metadata":{}}})"
                                  "\n"));
  s.run_until([&] { return s.seen.size() == 2; });
  CHECK(s.seen == std::vector<std::string>{"changed {}", R"(deleted {"metadata":{}})"});
  s.server.send(k_ended);
  s.run_until([&] { return s.server.requests.size() == 2; });
  CHECK(s.server.requests[1].target.ends_with("resourceVersion=8"));
  CHECK_FALSE(s.lost.has_value());
}

TEST_CASE("watch: a server that ends a stream at once, without a word, is not asked in a tight loop") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    auto reply = FakeServer::stream();
    reply.bytes += k_ended;
    return reply;
  };
  s.begin();
  s.run_until([&] { return s.lost.has_value(); });
  CHECK(s.lost->message == "the watch was closed");
  CHECK(s.lost->kind == Failure::Kind::transport);
  CHECK(s.server.requests.size() == 1);
}

TEST_CASE("watch: a refused stream is lost with the server's words") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})");
  };
  s.begin();
  s.run_until([&] { return s.lost.has_value(); });
  CHECK(s.lost->status == 403);
  CHECK(s.lost->message == "no");
}

TEST_CASE("watch: what is no event ends it, once, and tells what it was") {
  Scene s;
  CHECK(s.lost_by("{}\n{}\n").message == "watch event: no type");
  CHECK(s.lost->kind == Failure::Kind::nonsense);
  CHECK(s.lost_by("[]\n").message == "watch event: not a JSON object");
  CHECK(s.lost_by(R"({"type":"ADDED"})"
                  "\n")
            .message == "watch event: no object");
  CHECK(s.lost_by(R"({"type":"ERROR","object":{"kind":"Pod"}})"
                  "\n")
            .message == "status: not a Status");
  CHECK(s.lost_by(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
                  "\n")
            .status == 410);
  CHECK(s.seen.empty());
}

TEST_CASE("watch: nothing is told after what ended it, and the handler may destroy it") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) {
    auto reply = FakeServer::stream();
    reply.bytes += FakeServer::chunk(
        "{}\n"
        R"({"type":"ADDED","object":{}})"
        "\n");
    return reply;
  };
  s.begin();
  s.run_until([&] { return s.lost.has_value(); });
  CHECK(s.seen.empty());
  s.lost.reset();
  int told = 0;
  s.watch = std::make_unique<Watch>(*s.client, Watch::Source{"/pods", "labelSelector=x", "5"},
                                    Watch::Handlers{{}, {}, [&](const Failure&) {
                                                      ++told;
                                                      s.watch.reset();
                                                    }});
  s.run_until([&] { return told > 0; });
  CHECK(told == 1);
}

TEST_CASE(
    "watch: half a line at a stream's end is none of the next one's, and a silent end after it is one") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::stream(); };
  s.begin();
  s.run_until([&] { return s.server.requests.size() == 1; });
  s.server.send(FakeServer::chunk("{\"type\":\"ADDED\",\"object\":{}}\n{\"type\""));
  s.run_until([&] { return s.seen.size() == 1; });
  s.server.send(k_ended);
  s.run_until([&] { return s.server.requests.size() == 2; });
  s.server.send(FakeServer::chunk("{\"type\":\"ADDED\",\"object\":{}}\n"));
  s.run_until([&] { return s.seen.size() == 2; });
  s.server.send(k_ended);
  s.run_until([&] { return s.server.requests.size() == 3; });
  CHECK_FALSE(s.lost.has_value());
  s.server.send(k_ended);
  s.run_until([&] { return s.lost.has_value(); });
  CHECK(s.lost->message == "the watch was closed");
}

TEST_CASE("watch: a line that comes in pieces is one, and one that never ends is given up") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::stream(); };
  s.watch = std::make_unique<Watch>(
      *s.client, Watch::Source{.path = "/pods", .selector = "x", .version = "5", .longest_line = 30},
      s.handlers());
  s.run_until([&] { return s.server.requests.size() == 1; });
  const auto piece = [&](const std::string& text) {
    s.server.send(FakeServer::chunk(text));
    for (int i = 0; i < 5; ++i) REQUIRE(s.loop.run_once(Milliseconds(5)).ok());
  };
  piece("{\"type\":\"ADDED\",\"object\":{");
  piece("}}\n");
  CHECK(s.seen.size() == 1);
  piece(std::string(30, ' '));
  CHECK_FALSE(s.lost.has_value());
  piece(" ");
  REQUIRE(s.lost.has_value());
  CHECK(s.lost->message == "an event without end");
}

TEST_CASE(
    "watch: a stream that outlives its limit is on a dead connection, and one without a limit has none") {
  Scene s;
  s.server.on_request = [](const FakeServer::Request&) { return FakeServer::stream(); };
  const Watch::Source source{.path = "/pods",
                             .selector = "x",
                             .version = "5",
                             .stream_limit = std::chrono::seconds(1),
                             .late = Milliseconds(-970)};
  s.watch = std::make_unique<Watch>(*s.client, source, s.handlers());
  s.run_until([&] { return s.lost.has_value(); });
  CHECK(s.lost->kind == Failure::Kind::transport);
  s.lost.reset();
  s.watch = std::make_unique<Watch>(
      *s.client, Watch::Source{.path = "/pods", .selector = "x", .version = "5", .late = Milliseconds(30)},
      s.handlers());
  const auto until = std::chrono::steady_clock::now() + Milliseconds(90);
  while (std::chrono::steady_clock::now() < until) REQUIRE(s.loop.run_once(Milliseconds(10)).ok());
  CHECK_FALSE(s.lost.has_value());
}

TEST_CASE("watch: a stream that has lived for a while may end without a word") {
  Scene s;
  int streams = 0;
  s.server.on_request = [&](const FakeServer::Request&) {
    auto reply = FakeServer::stream();
    if (++streams < 3) reply.bytes += k_ended;
    return reply;
  };
  s.watch = std::make_unique<Watch>(
      *s.client, Watch::Source{.path = "/pods", .selector = "x", .version = "5", .shortest = Milliseconds(0)},
      s.handlers());
  s.run_until([&] { return streams == 3; });
  CHECK_FALSE(s.lost.has_value());
}
