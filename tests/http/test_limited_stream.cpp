#include "lib/http/limited_stream.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

using namespace glidepod;
using namespace glidepod::http;

namespace {

int code(const std::string& method, const httplib::Headers& headers) {
  httplib::Request request;
  request.method = method;
  request.headers = headers;
  LimitedStream stream(-1);
  const auto refused = stream.check_framing(request);
  CHECK(stream.in_step() == !refused);
  return refused ? refused->status : 200;
}

}  // namespace

TEST_CASE("limited_stream: a request whose end is not beyond doubt is refused") {
  CHECK(code("GET", {}) == 200);
  CHECK(code("GET", {{"Content-Length", "0"}}) == 200);
  CHECK(code("DELETE", {}) == 200);
  CHECK(code("DELETE", {{"Content-Length", "10"}}) == 200);
  CHECK(code("PATCH", {{"Content-Length", "10"}}) == 200);
  CHECK(code("POST", {{"Transfer-Encoding", "Chunked"}}) == 200);
  CHECK(code("POST", {}) == 411);
  CHECK(code("POST", {{"Content-Length", "3145728"}}) == 200);
  CHECK(code("POST", {{"Content-Length", "3145729"}}) == 413);
  for (const auto* length : {"-1", "", "1 ", "0x5", "99999999999999999999", "5, 5"}) {
    CAPTURE(length);
    CHECK(code("POST", {{"Content-Length", length}}) == 400);
  }
  CHECK(code("POST", {{"Content-Length", "5"}, {"Content-Length", "5"}}) == 400);
  CHECK(code("POST", {{"Content-Length", "5"}, {"Transfer-Encoding", "chunked"}}) == 400);
  CHECK(code("POST", {{"Transfer-Encoding", "gzip, chunked"}}) == 400);
  CHECK(code("GET", {{"Content-Length", "5"}}) == 400);
  CHECK(code("GET", {{"Transfer-Encoding", "chunked"}}) == 400);
}

TEST_CASE("limited_stream: no more bytes are read than a request may have") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd client(ends[0]), server(ends[1]);
  LimitedStream stream(server.get());
  const std::string bytes(65536, 'x');
  std::size_t received = 0;
  bool open = true;
  REQUIRE(send(client.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(stream.await_request());
  while (open && received < 2 * LimitedStream::k_body_limit) {
    char buffer[8192];
    if (received % bytes.size() == 0 && received > 0) {
      REQUIRE(send(client.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    }
    const ssize_t got = stream.read(buffer, sizeof buffer);
    open = got > 0;
    if (open) received += static_cast<std::size_t>(got);
  }
  CHECK_FALSE(open);
  CHECK(stream.too_long());
  CHECK(received == LimitedStream::k_body_limit + 65536);
}

TEST_CASE("attack: an upload that trickles is cut off, and one that comes along is not") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd client(ends[0]), server(ends[1]);
  LimitedStream stream(server.get());
  char buffer[16];
  stream.begin_upload(1'000'000, Milliseconds(40));
  REQUIRE(send(client.get(), "one", 3, 0) == 3);
  CHECK(stream.read_upload(buffer, sizeof buffer) == 3);
  CHECK(stream.read_upload(buffer, sizeof buffer) == -1);
  // What comes buys time, by its length.
  std::string much(LimitedStream::k_least_rate, 'x');
  stream.begin_upload(1'000'000, Milliseconds(0));
  std::size_t got = 0;
  for (std::size_t sent = 0; got < much.size();) {
    if (sent < much.size())
      sent += static_cast<std::size_t>(
          send(client.get(), much.data() + sent, std::min<std::size_t>(4096, much.size() - sent), 0));
    char piece[4096];
    const auto read = stream.read_upload(piece, sizeof piece);
    REQUIRE(read > 0);
    got += static_cast<std::size_t>(read);
  }
  REQUIRE(send(client.get(), "one", 3, 0) == 3);
  CHECK(stream.read_upload(buffer, sizeof buffer) == 3);
}
