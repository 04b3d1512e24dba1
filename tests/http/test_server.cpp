#include "lib/http/server.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

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

TEST_CASE("server: what comes of an upload in small pieces is handed on in large ones") {
  const TemporaryFolder folder;
  Loop loop = Loop::create().value();
  std::vector<std::string> pieces;
  Server::Settings settings;
  settings.longest_upload = 1 << 20;
  settings.upload = [&](const Connection&, const httplib::Request&, Upload& upload, httplib::Response&) {
    REQUIRE(upload.read([&](std::string_view piece) -> Result<void> {
      pieces.emplace_back(piece);
      return {};
    }));
  };
  Server server(loop, std::move(settings));
  REQUIRE(server.listen_unix(folder.path + "/socket"));
  std::atomic<bool> done = false;
  std::thread client([&] {
    const Fd fd = wire::connect_to(folder.path + "/socket", 0).value();
    // The body's begin is read with the headers, the rest comes once it is asked for.
    (void)write_all(fd, "PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\none");
    char answer[100];
    (void)::recv(fd.get(), answer, sizeof answer, 0);
    (void)write_all(fd, "two");
    (void)::recv(fd.get(), answer, sizeof answer, 0);
    done = true;
  });
  while (!done) REQUIRE(loop.run_once(Milliseconds(5)));
  client.join();
  server.stop();
  CHECK(pieces == std::vector<std::string>{"onetwo"});
}
