// How one pod is followed.

#include <doctest/doctest.h>

#include "tests/kube/client_fixture.hpp"

using namespace glidepod;
using namespace glidepod::kube;

TEST_CASE("watch: from the present state on, through bookmarks, deletion and a closed stream") {
  Fixture f;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") == std::string::npos) return FakeServer::json(200, pod_json("1"));
    return FakeServer::stream();
  };
  f.watch("");
  f.run_until([&] { return f.server.requests.size() == 2; });
  CHECK(f.server.requests[1].target ==
        "/api/v1/namespaces/ns/"
        "pods?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dp&resourceVersion=1");
  const std::string first = event_json("MODIFIED", pod_json("2"));
  f.server.send(FakeServer::chunk(first.substr(0, 10)));
  f.server.send(
      FakeServer::chunk(first.substr(10) + event_json("ADDED", pod_json("3")) +
                        event_json("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":"9"}})")));
  f.server.send(FakeServer::chunk(event_json("DELETED", pod_json("10"))));
  f.run_until([&] { return f.deleted == 1; });
  CHECK(f.versions == std::vector<std::string>{"1", "2", "3"});
  f.server.send("0\r\n\r\n");
  f.run_until([&] { return f.server.requests.size() == 3; });
  CHECK(f.server.requests[2].target.ends_with("resourceVersion=10"));
  CHECK(f.failures.empty());
}

TEST_CASE("watch: an expired version means the present state again") {
  Fixture f;
  bool as_event = false;
  SUBCASE("told by the HTTP status") {}
  SUBCASE("told by an event") {
    as_event = true;
  }
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") == std::string::npos) return FakeServer::json(200, pod_json("50"));
    if (request.target.ends_with("resourceVersion=50")) return FakeServer::stream();
    const std::string gone = status_json(410, "Expired", "too old resource version");
    if (!as_event) return FakeServer::json(410, gone);
    auto reply = FakeServer::stream();
    reply.bytes += FakeServer::chunk(event_json("ERROR", gone));
    return reply;
  };
  f.watch("5");
  f.run_until([&] { return f.server.requests.size() == 3; });
  CHECK(f.versions == std::vector<std::string>{"50"});
  CHECK(f.failures.size() == 1);
  CHECK(f.failures[0].status == 410);
}

TEST_CASE("watch: what a stream that falls silent does not tell is asked for") {
  Fixture f;
  std::string now = "1";
  int streams = 0, questions = 0;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") != std::string::npos) return ++streams, FakeServer::stream();
    return ++questions, FakeServer::json(200, pod_json(now));
  };
  f.watch("1", Milliseconds(10));
  SUBCASE("a dead connection") {
    f.run_until([&] { return questions == 1; });
    CHECK(f.versions.empty());
    now = "2";
    f.run_until([&] { return f.versions.size() == 1 && streams == 2; });
    CHECK(f.versions == std::vector<std::string>{"2"});
    CHECK(f.server.requests.back().target.ends_with("resourceVersion=2"));
    REQUIRE(f.failures.size() == 1);
    CHECK(f.failures[0].message == "the watch has fallen silent");
  }
  SUBCASE("nothing has happened") {
    f.run_until([&] { return questions == 4; });
    CHECK(streams == 1);
    CHECK(f.versions.empty());
    CHECK(f.failures.empty());
  }
  SUBCASE("an older answer of another server") {
    now = "0";
    f.run_until([&] { return questions == 3; });
    CHECK(streams == 1);
    CHECK(f.versions.empty());
  }
  SUBCASE("nobody answers") {
    f.server.on_request = [&](const FakeServer::Request& request) {
      if (request.target.find("watch=true") != std::string::npos) return ++streams, FakeServer::stream();
      return ++questions, FakeServer::json(503, "");
    };
    f.run_until([&] { return questions == 3; });
    CHECK(streams == 1);
    CHECK(f.versions.empty());
  }
}

TEST_CASE("watch: a question does not outlive what the stream tells, nor the stream itself") {
  Fixture f;
  int streams = 0, stream = -1, question = -1;
  f.server.on_request = [&](const FakeServer::Request& request) -> FakeServer::Reply {
    const bool watches = request.target.find("watch=true") != std::string::npos;
    (watches ? stream : question) = request.connection;
    if (!watches) return {};  // on its way
    return ++streams, FakeServer::stream();
  };
  f.watch("1", Milliseconds(40));
  f.run_until([&] { return question >= 0; });
  const int asked = question;
  SUBCASE("of a newer version") {
    f.server.send(stream, FakeServer::chunk(event_json("MODIFIED", pod_json("2"))));
    f.run_until([&] { return f.versions.size() == 1; });
    f.server.send(asked, FakeServer::json(200, pod_json("3")).bytes);
    f.run_for(Milliseconds(15));
    CHECK(streams == 1);
    CHECK(f.failures.empty());
  }
  SUBCASE("when that is garbled") {
    f.server.send(stream, FakeServer::chunk("{}\n"));
    f.run_until([&] { return f.failures.size() == 1; });
    f.server.send(asked, FakeServer::json(200, pod_json("3")).bytes);
    f.run_for(Milliseconds(15));
    CHECK(streams == 1);
    CHECK(f.versions.empty());
    CHECK(f.failures.size() == 1);
  }
}

TEST_CASE("watch: while it waits after a failure it asks nothing, and what it has told it knows") {
  Fixture f;
  int questions = 0, streams = 0;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") == std::string::npos)
      return ++questions, FakeServer::json(200, pod_json("2"));
    ++streams;
    auto reply = FakeServer::stream();
    reply.bytes += FakeServer::chunk(event_json("MODIFIED", pod_json("2")));
    return reply;
  };
  SUBCASE("after a garbled event") {
    f.watch("1", Milliseconds(5));
    // It waits for 50 ms at least. Where the machine stood still for as long, nothing is seen.
    bool seen = false;
    f.run_until([&] { return f.versions.size() == 1; });
    for (int i = 0; i < 20 && !seen; ++i) {
      const auto failures = f.failures.size();
      const auto began = std::chrono::steady_clock::now();
      f.server.send(FakeServer::chunk("{}\n"));
      f.run_until([&] { return f.failures.size() > failures; });
      const int ended = streams;
      questions = 0;
      f.run_for(Milliseconds(25));
      seen = std::chrono::steady_clock::now() - began < Milliseconds(50);
      if (seen)
        CHECK(questions == 0);
      else
        f.run_until([&] { return streams > ended; });
    }
    CHECK(seen);
  }
  SUBCASE("what the stream has told is no silence") {
    f.watch("1", Milliseconds(5));
    f.run_until([&] { return questions == 2; });
    CHECK(f.versions == std::vector<std::string>{"2"});
    CHECK(f.failures.empty());
  }
}

TEST_CASE("watch: another pod's events, and objects that are no pods") {
  Fixture f;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") == std::string::npos) return FakeServer::json(200, pod_json("9"));
    return FakeServer::stream();
  };
  const std::string other = R"({"kind":"Pod","metadata":{"name":"q","resourceVersion":"8"}})";
  f.watch("5");
  f.run_until([&] { return f.server.requests.size() == 1; });
  f.server.send(FakeServer::chunk(event_json("MODIFIED", other) + event_json("DELETED", other) +
                                  event_json("DELETED", R"({"metadata":7})") +
                                  event_json("MODIFIED", pod_json("6"))));
  f.run_until([&] { return !f.versions.empty(); });
  CHECK(f.versions == std::vector<std::string>{"6"});
  CHECK(f.deleted == 0);
  // What comes behind nonsense is of a stream that is not believed any more.
  f.server.send(
      FakeServer::chunk(event_json("MODIFIED", R"({"metadata":7})") + event_json("MODIFIED", pod_json("7"))));
  f.run_until([&] { return f.versions.size() == 2; });
  CHECK(f.versions == std::vector<std::string>{"6", "9"});
  REQUIRE(f.failures.size() == 1);
  CHECK(f.failures[0].kind == Failure::Kind::nonsense);
}

TEST_CASE("watch: a present state that cannot be read is told, and read again") {
  Fixture f;
  int reads = 0;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") != std::string::npos) return FakeServer::stream();
    ++reads;
    if (reads == 1) return FakeServer::json(503, status_json(503, "Busy", "words"));
    if (reads == 2) return FakeServer::json(200, R"({"metadata":7})");
    return FakeServer::json(200, pod_json("3"));
  };
  f.watch("");
  f.run_until([&] { return !f.versions.empty(); });
  CHECK(f.versions == std::vector<std::string>{"3"});
  REQUIRE(f.failures.size() == 2);
  CHECK(f.failures[0].status == 503);
  CHECK(f.failures[1].kind == Failure::Kind::nonsense);
}

TEST_CASE("watch: the pauses between failures grow, and a stream that has lived for a while ends that") {
  Fixture f;
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> failed;
  std::vector<Milliseconds> pauses;
  bool lives = false;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") == std::string::npos) {
      if (failed.size() > pauses.size())
        pauses.push_back(std::chrono::duration_cast<Milliseconds>(Clock::now() - failed.back()));
      return FakeServer::json(200, pod_json("5"));
    }
    auto reply = FakeServer::stream();
    if (!lives) reply.bytes += FakeServer::chunk("{}\n");
    return reply;
  };
  const auto begin = [&](Milliseconds silence) {
    f.operation = f.client->watch(
        f.pod, "5", {[](const Pod&) {}, {}, [&](const Failure&) { failed.push_back(Clock::now()); }},
        silence);
  };
  SUBCASE("of streams that end at once") {
    begin(Milliseconds(60));
    f.run_until([&] { return pauses.size() >= 4; });
    CHECK(pauses[3] >= Milliseconds(390));
  }
  SUBCASE("but for one that has lived") {
    lives = true;
    begin(Milliseconds(5));
    for (std::size_t i = 1; i <= 4; ++i) {
      f.run_for(Milliseconds(25));
      for (const auto& request : f.server.requests)
        if (request.target.find("watch=true") != std::string::npos)
          f.server.send(request.connection, FakeServer::chunk("{}\n"));
      f.server.requests.clear();
      f.run_until([&] { return pauses.size() >= i; });
      f.run_until([&] {
        return !f.server.requests.empty() &&
               f.server.requests.back().target.find("watch") != std::string::npos;
      });
    }
    CHECK(pauses[3] < Milliseconds(300));
  }
}

TEST_CASE("watch: one that is destroyed asks nothing more, whatever it was waiting for") {
  Fixture f;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") != std::string::npos) return FakeServer::stream();
    return FakeServer::json(200, pod_json("3"));
  };
  const auto is_quiet = [&] {
    const auto before = f.server.requests.size();
    f.run_for(Milliseconds(130));
    CHECK(f.server.requests.size() == before);
  };
  SUBCASE("by what it tells first") {
    f.operation = f.client->watch(f.pod, "", {[&](const Pod&) { f.operation.reset(); }, {}, {}});
    f.run_until([&] { return !f.operation; });
    is_quiet();
  }
  SUBCASE("for a word of the stream") {
    f.watch("1", Milliseconds(20));
    f.run_until([&] { return f.server.requests.size() == 1; });
    f.operation.reset();
    is_quiet();
  }
  SUBCASE("for its next try") {
    f.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(503, ""); };
    f.watch("");
    f.run_until([&] { return f.failures.size() == 1; });
    f.operation.reset();
    is_quiet();
  }
  SUBCASE("when nobody wants to hear of a deletion") {
    f.operation = f.client->watch(f.pod, "1", {[](const Pod&) {}, {}, {}});
    f.run_until([&] { return f.server.requests.size() == 1; });
    f.server.send(FakeServer::chunk(event_json("DELETED", pod_json("4"))));
    f.run_for(Milliseconds(20));
    f.operation.reset();
    is_quiet();
  }
}

TEST_CASE("watch: cut off or garbled, it goes on, its handler may end it") {
  Fixture f;
  int streams = 0;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.target.find("watch=true") == std::string::npos) return FakeServer::json(200, pod_json("5"));
    auto reply = FakeServer::stream();
    ++streams;
    if (streams == 1) reply.close = true;  // cut off, so the present state is fetched
    if (streams == 2) reply.bytes += FakeServer::chunk("{\"type\":\n");
    if (streams == 3)
      reply.bytes +=
          FakeServer::chunk(event_json("MODIFIED", pod_json("6")) + event_json("MODIFIED", pod_json("7")));
    return reply;
  };
  std::vector<std::string> seen;
  f.operation = f.client->watch(f.pod, "4",
                                {[&](const Pod& pod) {
                                   seen.push_back(pod.resource_version);
                                   if (pod.resource_version == "6") f.operation.reset();
                                 },
                                 {},
                                 {}});
  f.run_until([&] { return !f.operation; });
  CHECK(seen == std::vector<std::string>{"5", "5", "6"});
}
