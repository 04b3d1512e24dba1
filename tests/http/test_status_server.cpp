#include "lib/http/status_server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace glidepod;
using namespace glidepod::http;

namespace {

struct Scene {
  Loop loop = Loop::create().value();
  std::string body = "hello\n";
  std::string tag, asked;
  std::unique_ptr<StatusServer> server =
      StatusServer::create(loop, "127.0.0.1:0", [this](const std::string& path) {
        asked = path;
        if (path != "/there") return StatusServer::Answer{404, "no\n"};
        return StatusServer::Answer{200, body, "text/plain", tag, {{"X-Of-Its-Own", "yes"}}};
      }).value();
  Fd connect() const {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    return fd;
  }
  // Everything up to the end of the connection.
  std::string answer(const Fd& fd) {
    std::string result;
    for (int i = 0; i < 2000; ++i) {
      REQUIRE(loop.run_once(Milliseconds(1)).ok());
      char buffer[65536];
      const auto got = ::recv(fd.get(), buffer, sizeof buffer, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return result;
      if (got > 0) result.append(buffer, static_cast<std::size_t>(got));
    }
    FAIL("the connection stays open");
    return result;
  }
  std::string ask(const std::string& request) {
    const auto fd = connect();
    REQUIRE(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size()));
    return answer(fd);
  }
};

}  // namespace

TEST_CASE("status server: GET and HEAD, and nothing else") {
  Scene scene;
  const auto got = scene.ask("GET /there?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(got.find("Content-Length: 6\r\n") != std::string::npos);
  CHECK(got.ends_with("\r\n\r\nhello\n"));
  CHECK(scene.asked == "/there");
  const auto head = scene.ask("HEAD /there HTTP/1.0\r\n\r\n");
  CHECK(head.find("Content-Length: 6\r\n") != std::string::npos);
  CHECK(head.ends_with("\r\n\r\n"));
  CHECK(scene.ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(scene.ask("POST /there HTTP/1.1\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 405 "));
  CHECK(scene.ask("hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(scene.ask("GET  /there\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

TEST_CASE("status server: headers, and no body for who has it already") {
  Scene scene;
  scene.tag = "v1";
  const auto got = scene.ask("GET /there HTTP/1.1\r\nIf-None-Match: \"v0\"\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(got.find("\r\nETag: \"v1\"\r\n") != std::string::npos);
  CHECK(got.find("\r\nX-Of-Its-Own: yes\r\n") != std::string::npos);
  CHECK(got.find("\r\nX-Content-Type-Options: nosniff\r\n") != std::string::npos);
  const auto same = scene.ask("GET /there HTTP/1.1\r\nIf-None-Match: \"v1\"\r\n\r\n");
  CHECK(same.starts_with("HTTP/1.1 304 "));
  CHECK(same.find("\r\nX-Of-Its-Own: yes\r\n") != std::string::npos);
  CHECK(same.ends_with("\r\n\r\n"));
}

TEST_CASE("status server: a long answer arrives whole, a long request is refused") {
  Scene scene;
  scene.body.assign(3'000'000, 'x');
  CHECK(scene.ask("GET /there HTTP/1.1\r\n\r\n").size() > 3'000'000);
  CHECK(scene.ask("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 414 "));
}

TEST_CASE("status server: a request in pieces, and clients that leave or stay silent") {
  Scene scene;
  const auto silent = scene.connect(), left = scene.connect(), slow = scene.connect();
  ::send(slow.get(), "GET /there", 10, MSG_NOSIGNAL);
  ::shutdown(left.get(), SHUT_RDWR);
  for (int i = 0; i < 20; ++i) REQUIRE(scene.loop.run_once(Milliseconds(1)).ok());
  ::send(slow.get(), " HTTP/1.1\r\n\r\n", 13, MSG_NOSIGNAL);
  CHECK(scene.answer(slow).ends_with("hello\n"));
}

TEST_CASE("status server: too many at a time are refused, the others are served") {
  Scene scene;
  std::vector<Fd> idle;
  for (int i = 0; i < 32; ++i) {
    idle.push_back(scene.connect());
    for (int j = 0; j < 3; ++j) REQUIRE(scene.loop.run_once(Milliseconds(1)).ok());
  }
  CHECK(scene.ask("GET /there HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
  idle.pop_back();
  // Its thread notices soon.
  std::string answer;
  for (int j = 0; j < 1000 && !answer.ends_with("hello\n"); ++j)
    answer = scene.ask("GET /there HTTP/1.1\r\n\r\n");
  CHECK(answer.ends_with("hello\n"));
}

TEST_CASE("status server: addresses") {
  Loop loop = Loop::create().value();
  const auto at = [&loop](const char* address) {
    const auto made =
        StatusServer::create(loop, address, [](const std::string&) { return StatusServer::Answer{}; });
    return made ? std::string("ok") : made.error().message();
  };
  CHECK(at(":0") == "ok");
  CHECK(at("0.0.0.0:0") == "ok");
  CHECK(at("8080") == "listen on 8080: must be HOST:PORT or :PORT");
  CHECK(at("localhost:80").starts_with("listen on localhost:80: "));
  CHECK(at("127.0.0.1:http").starts_with("listen on 127.0.0.1:http: "));
}
