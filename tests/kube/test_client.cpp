#include "lib/kube/client.hpp"

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "tests/kube/client_fixture.hpp"

using namespace glidepod;
using namespace glidepod::kube;

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

TEST_CASE("client: what an answer says of itself: its words, when to ask again, and nothing of a good one") {
  http::Response response;
  for (const int good : {200, 201, 299}) {
    response.status = good;
    CHECK_FALSE(failure_in(response).has_value());
  }
  for (const int bad : {199, 300, 304, 404}) {
    response.status = bad;
    CHECK(failure_in(response)->status == bad);
  }
  response.body = "<html>bad\ngateway</html>";
  CHECK(failure_in(response)->message == "<html>bad");
  response.body = R"({"kind":"Status","code":429,"reason":"TooMany","details":{"retryAfterSeconds":2}})";
  CHECK(failure_in(response)->reason == "TooMany");
  CHECK(failure_in(response)->retry_after == std::chrono::seconds(2));
  response.retry_after = std::chrono::seconds(7);
  CHECK(failure_in(response)->retry_after == std::chrono::seconds(7));
  response = {};
  response.status = 429;
  response.body = R"({"kind":"Status","code":429})";
  CHECK_FALSE(failure_in(response)->retry_after.has_value());
}

TEST_CASE("client: a request of the cluster's API has its authority, and asks for JSON") {
  Fixture f;
  const auto client = Client::create(f.loop, {"https://10.0.0.1:443", {}, {}, "/ca.crt"}).value();
  const auto request = client->request("GET", "/x");
  CHECK(request.url == "https://10.0.0.1:443/x");
  CHECK(request.ca_file == "/ca.crt");
  CHECK(request.headers == std::vector<std::string>{"Accept: application/json"});
  CHECK(request.authorization.empty());
}

TEST_CASE("client: what cannot change is asked once, and each attempt is told to the observer") {
  Fixture f;
  std::vector<std::string> observed;
  f.client->observe([&](const std::string& method, int status, std::chrono::duration<double>) {
    observed.push_back(fmt::format("{} {}", method, status));
  });
  std::optional<Result<std::string>> answer;
  const auto attempts_of = [&](Call call, int status, const char* reason) {
    observed.clear();
    answer.reset();
    f.server.on_request = [&](const FakeServer::Request&) {
      if (observed.empty()) return FakeServer::json(status, status_json(status, reason, "words"));
      return FakeServer::json(200, "{}");
    };
    f.operation = f.client->call(std::move(call), [&](Result<std::string> got) { answer = std::move(got); });
    f.run_until([&] { return answer.has_value(); });
    return observed.size();
  };
  CHECK(attempts_of({.method = "POST", .path = "/x", .body = "{}"}, 409, "AlreadyExists") == 1);
  CHECK(attempts_of({.method = "POST", .path = "/x", .body = "{}"}, 409, "Conflict") == 2);
  CHECK(attempts_of({.method = "DELETE", .path = "/x", .body = "{}"}, 409, "Conflict") == 1);
  CHECK(attempts_of({.method = "PUT", .path = "/x", .body = "{}"}, 409, "Conflict") == 1);
  CHECK(attempts_of({.method = "PATCH", .path = "/x", .body = "{}"}, 409, "AlreadyExists") == 1);
  CHECK(attempts_of({.method = "PATCH", .path = "/x", .body = "{}"}, 409, "Conflict") == 2);
  CHECK(observed == std::vector<std::string>{"PATCH 409", "PATCH 200"});
  CHECK(attempts_of({.method = "POST", .path = "/x", .body = "{}"}, 503, "AlreadyExists") == 2);
  CHECK(attempts_of({.path = "/x", .repeat = http::Plan::Repeat::never}, 503, "Busy") == 1);
}

TEST_CASE("client: an attempt that gets no answer is given up, and an answer that is too long is none") {
  Fixture f;
  std::optional<Result<std::string>> answer;
  const auto handler = [&](Result<std::string> got) { answer = std::move(got); };
  f.server.on_request = [&](const FakeServer::Request&) {
    return f.server.requests.size() == 1 ? FakeServer::Reply{} : FakeServer::json(200, "[1]");
  };
  const auto began = std::chrono::steady_clock::now();
  f.operation = f.client->call({.path = "/x", .attempt_limit = Milliseconds(30)}, handler);
  f.run_until([&] { return answer.has_value(); });
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  CHECK(answer->value() == "[1]");
  CHECK(f.server.requests.size() == 2);
  answer.reset();
  f.operation = f.client->call(
      {.path = "/x", .repeat = http::Plan::Repeat::never, .longest_answer = std::size_t{2}}, handler);
  f.run_until([&] { return answer.has_value(); });
  CHECK_FALSE(answer->ok());
}

TEST_CASE("client: a page for people in the place of an answer is told by its status, not as nonsense") {
  Fixture f;
  f.server.on_request = [](const FakeServer::Request&) { return FakeServer::json(404, "<html>no</html>"); };
  f.get();
  CHECK(f.failure().kind == Failure::Kind::status);
  CHECK(f.failure().status == 404);
  CHECK(f.failure().message == "<html>no</html>");
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

TEST_CASE("endpoint: the socket where there is one, else the cluster's address") {
  const char* cluster[] = {"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=6443", nullptr};
  const char* six[] = {"KUBERNETES_SERVICE_HOST=fd00::1", nullptr};
  const char* none[] = {nullptr};
  CHECK(endpoint_in_pod("/nonexistent", cluster).value().url == "https://10.0.0.1:6443");
  CHECK(endpoint_in_pod("/nonexistent", cluster).value().ca_file == "/nonexistent/ca.crt");
  CHECK(endpoint_in_pod("/nonexistent", six).value().url == "https://[fd00::1]:443");
  CHECK_FALSE(endpoint_in_pod("/nonexistent", none).ok());
}
