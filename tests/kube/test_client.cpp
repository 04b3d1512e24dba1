#include "lib/kube/client.hpp"

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::kube;

namespace {

std::string pod_json(const std::string& version) {
  return R"({"kind":"Pod","metadata":{"name":"p","resourceVersion":")" + version +
         R"("},"spec":{"containers":[]}})";
}
std::string status_json(int code, const std::string& reason, const std::string& message) {
  return fmt::format(R"({{"kind":"Status","code":{},"reason":"{}","message":"{}"}})", code, reason, message);
}
std::string event_json(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

struct Fixture {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Client> client =
      Client::create(loop, endpoint_in_pod(server.folder(), environment).value()).value();
  static constexpr const char* environment[] = {nullptr};
  const PodName pod{"ns", "p"};
  std::unique_ptr<Client::Operation> operation;
  std::optional<Result<Pod>> answer;
  std::vector<std::string> versions;
  std::vector<Failure> failures;
  int deleted = 0;

  void get(std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
    operation = client->get(pod, std::chrono::steady_clock::now() + deadline, handler());
    run_until([this] { return answer.has_value(); });
  }
  PodHandler handler() {
    return [this](Result<Pod> got) { answer = std::move(got); };
  }
  void patch(const std::string& image) {
    operation = client->patch_image(pod, {1, "payload-0", "before:1", image},
                                    std::chrono::steady_clock::now() + std::chrono::seconds(5), handler());
    run_until([this] { return answer.has_value(); });
  }
  void watch(const std::string& version, Milliseconds silence = Milliseconds(60'000)) {
    operation = client->watch(
        pod, version,
        {[this](const Pod& seen) { versions.push_back(seen.resource_version); }, [this] { ++deleted; },
         [this](const Failure& failure) { failures.push_back(failure); }},
        silence);
  }
  template <typename Condition>
  void run_until(Condition condition) {
    for (int i = 0; i < 10'000 && !condition(); ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(condition());
  }
  Failure failure() const { return Failure::of(answer->error()); }
};

}  // namespace

TEST_CASE("client: get and patch, over the socket beside the token") {
  Fixture f;
  f.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(200, pod_json("7")); };
  f.get();
  CHECK(f.answer->value().resource_version == "7");
  CHECK(f.server.requests[0].method == "GET");
  CHECK(f.server.requests[0].target == "/api/v1/namespaces/ns/pods/p");
  f.answer.reset();
  f.patch("a:1");
  const auto& request = f.server.requests[1];
  CHECK(request.method == "PATCH");
  CHECK(request.headers.find("Content-Type: application/json-patch+json") != std::string::npos);
  CHECK(request.body == image_patch({1, "payload-0", "before:1", "a:1"}));
}

TEST_CASE("client: what may pass is tried again, what is for good is not") {
  Fixture f;
  struct Row {
    int status;
    int attempts;
  };
  for (const Row& row : {Row{500, 2}, Row{503, 2}, Row{409, 2}, Row{429, 2}, Row{401, 2}, Row{403, 1},
                         Row{404, 1}, Row{422, 1}, Row{400, 1}}) {
    CAPTURE(row.status);
    f.server.requests.clear();
    f.answer.reset();
    f.server.on_request = [&](const FakeServer::Request&) {
      if (f.server.requests.size() > 1) return FakeServer::json(200, pod_json("1"));
      return FakeServer::json(row.status, status_json(row.status, "Reason", "words"));
    };
    // A conflict is one of a change.
    row.status == 409 ? f.patch("a:1") : f.get();
    CHECK(f.server.requests.size() == static_cast<std::size_t>(row.attempts));
    CHECK(f.answer->ok() == (row.attempts == 2));
    if (row.attempts == 2) continue;
    CHECK(f.failure().status == row.status);
    CHECK(f.failure().reason == "Reason");
    CHECK(f.failure().rejected());
    CHECK(f.failure().to_string() == fmt::format("{} Reason: words", row.status));
  }
}

TEST_CASE("client: nobody there, cut off, garbage, too much: an error in time, never a crash") {
  Fixture f;
  FakeServer::Reply reply;
  SUBCASE("cut off") {
    reply = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", true};
  }
  SUBCASE("closed at once") {
    reply = {"", true};
  }
  SUBCASE("no HTTP") {
    reply = {"SSH-2.0-OpenSSH\r\n\r\n", true};
  }
  SUBCASE("no JSON") {
    reply = FakeServer::json(200, "<html>");
  }
  SUBCASE("no pod") {
    reply = FakeServer::json(200, R"({"metadata":{"name":5}})");
  }
  SUBCASE("no Status") {
    reply = FakeServer::json(502, "<html>bad gateway</html>\nmore");
  }
  SUBCASE("never an answer") {
    reply = {};
  }
  f.server.on_request = [&](const FakeServer::Request&) { return reply; };
  f.get(std::chrono::milliseconds(60));
  CHECK(f.failure().retriable());
  CHECK_FALSE(f.failure().rejected());
  CHECK_FALSE(f.failure().to_string().empty());
}

TEST_CASE("client: a refusal does not speak for an earlier attempt whose effect is unknown") {
  Fixture f;
  FakeServer::Reply first;
  bool rejected = false;
  SUBCASE("stored, and closed without an answer") {
    first = {"", true};
  }
  SUBCASE("stored, and cut off") {
    first = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", true};
  }
  SUBCASE("an answer that is none") {
    first = FakeServer::json(200, "<html>");
  }
  SUBCASE("500") {
    first = FakeServer::json(500, status_json(500, "InternalError", "etcd timed out"));
  }
  SUBCASE("504") {
    first = FakeServer::json(504, status_json(504, "Timeout", "request did not complete"));
  }
  SUBCASE("408") {
    first = FakeServer::json(408, "a gateway's words");
  }
  SUBCASE("429 is refused before any effect") {
    first = FakeServer::json(429, status_json(429, "TooManyRequests", "slow down"));
    rejected = true;
  }
  SUBCASE("409 is refused before any effect") {
    first = FakeServer::json(409, status_json(409, "Conflict", "modified"));
    rejected = true;
  }
  f.server.on_request = [&](const FakeServer::Request&) {
    if (f.server.requests.size() == 1) return first;
    return FakeServer::json(403, status_json(403, "Forbidden", "no more"));
  };
  f.patch("a:1");
  CHECK(f.server.requests.size() == 2);
  CHECK(f.failure().status == 403);
  CHECK(f.failure().rejected() == rejected);
}

TEST_CASE("client: a change is not sent again behind our back when a kept connection dies under it") {
  Fixture f;
  std::string stored = "a:1";
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (request.method == "GET") return FakeServer::json(200, pod_json("1"));
    if (stored != "a:1") return FakeServer::json(403, status_json(403, "Forbidden", "no more"));
    stored = request.body;
    return FakeServer::Reply{"", true};
  };
  f.get();  // leaves a connection that the patch takes
  f.answer.reset();
  f.patch("b:1");
  CHECK(stored.find("b:1") != std::string::npos);
  CHECK(f.server.requests[0].connection == f.server.requests[1].connection);
  CHECK(f.failure().status == 403);
  CHECK_FALSE(f.failure().rejected());
}

TEST_CASE("client: the server's Retry-After is obeyed, within the deadline") {
  Fixture f;
  f.server.on_request = [](const FakeServer::Request&) {
    return FakeServer::json(429, status_json(429, "TooManyRequests", "slow down"), "Retry-After: 100\r\n");
  };
  f.get();
  CHECK(f.server.requests.size() == 1);
  CHECK(f.failure().retry_after == std::chrono::seconds(100));
  Failure failure;
  failure.retry_after = std::chrono::seconds(3);
  CHECK(backoff(1, 0, failure) == Milliseconds(3000));
  failure.retry_after.reset();
  CHECK(backoff(1, 0, failure) == Milliseconds(50));
  CHECK(backoff(1, 1, failure) == Milliseconds(100));
  CHECK(backoff(3, 1, failure) == Milliseconds(400));
  CHECK(backoff(99, 1, failure) == Milliseconds(10'000));
}

TEST_CASE("client: a cancelled request calls nobody") {
  Fixture f;
  f.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(200, pod_json("1")); };
  f.operation = f.client->get(f.pod, std::chrono::steady_clock::now() + std::chrono::seconds(5), f.handler());
  f.operation.reset();
  f.get();
  CHECK(f.answer.has_value());
}

TEST_CASE("client: the token is read for every request") {
  Fixture f;
  const std::string token = f.server.folder() + "/token";
  f.client = Client::create(f.loop, {"http://localhost", f.server.socket(), token, {}}).value();
  f.server.on_request = [&](const FakeServer::Request& request) {
    const bool fresh = request.headers.find("Authorization: Bearer second\r\n") != std::string::npos;
    if (fresh) return FakeServer::json(200, pod_json("1"));
    REQUIRE(replace_file(token, "second\n", 0600).ok());
    return FakeServer::json(401, status_json(401, "Unauthorized", "expired"));
  };
  REQUIRE(replace_file(token, "first\n", 0600).ok());
  f.get();
  CHECK(f.answer->ok());
}

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

TEST_CASE("endpoint: the socket where there is one, else the cluster's address") {
  const char* cluster[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=6443", nullptr};
  const char* six[] = {"KUBERNETES_SERVICE_HOST=fd00::1", nullptr};
  const char* none[] = {nullptr};
  CHECK(endpoint_in_pod("/nonexistent", cluster).value().url == "https://10.0.0.1:6443");
  CHECK(endpoint_in_pod("/nonexistent", cluster).value().ca_file == "/nonexistent/ca.crt");
  CHECK(endpoint_in_pod("/nonexistent", six).value().url == "https://[fd00::1]:443");
  CHECK_FALSE(endpoint_in_pod("/nonexistent", none).ok());
}
