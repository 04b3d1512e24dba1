#include "lib/http/server.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

using namespace glidepod;
using namespace glidepod::http;

namespace {

struct Ends {
  Fd client, server;
  Ends() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    client.reset(ends[0]);
    server.reset(ends[1]);
  }
};

}  // namespace

TEST_CASE("server: a client that only listens on has not gone") {
  const Ends ends;
  const Fd news(eventfd(0, EFD_CLOEXEC));
  const Connection connection{{Caller::Kind::owner, {}}, ends.server.get()};
  CHECK(connection.wait(news.get(), Milliseconds(0)));
  REQUIRE(send(ends.client.get(), "\r\n", 2, 0) == 2);
  CHECK(connection.wait(news.get(), Milliseconds(0)));
  REQUIRE(shutdown(ends.client.get(), SHUT_WR) == 0);
  CHECK(connection.wait(news.get(), Milliseconds(0)));
  eventfd_write(news.get(), 1);
  CHECK(connection.wait(news.get(), Milliseconds(60000)));
}

TEST_CASE("server: a client that has left ends the wait") {
  Ends ends;
  const Fd news(eventfd(0, EFD_CLOEXEC));
  const Connection connection{{Caller::Kind::owner, {}}, ends.server.get()};
  ends.client.reset();
  CHECK_FALSE(connection.wait(news.get(), Milliseconds(60000)));
}

TEST_CASE("server: over TCP the end of what a client says counts as its leaving") {
  const Ends ends;
  const Fd news(eventfd(0, EFD_CLOEXEC));
  const Connection connection{{Caller::Kind::network, {}}, ends.server.get()};
  CHECK(connection.wait(news.get(), Milliseconds(0)));
  REQUIRE(shutdown(ends.client.get(), SHUT_WR) == 0);
  CHECK_FALSE(connection.wait(news.get(), Milliseconds(60000)));
}
