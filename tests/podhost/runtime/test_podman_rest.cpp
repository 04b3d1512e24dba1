#include "podhost/runtime/podman_rest.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::podhost;

namespace {

// The error of asking for a container, where podman answers so.
Error asked(const std::string& status, const std::string& body) {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/podman.sock";
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  const std::string answer = fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                                         status, body.size(), body);
  std::thread podman([&] {
    const Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> request{};
    [[maybe_unused]] const auto got = ::read(client.get(), request.data(), request.size());
    [[maybe_unused]] const auto sent = ::write(client.get(), answer.data(), answer.size());
  });
  PodmanRest rest(path);
  const auto info = rest.inspect_container("c");
  podman.join();
  REQUIRE_FALSE(info);
  return info.error();
}

}  // namespace

TEST_CASE("podman rest: only 404 says that podman knows no such container") {
  const auto lacks = asked("404 Not Found",
                           R"({"cause":"no such container","message":"no container c: no such container"})");
  CHECK(lacks.message() == "no container c");
  CHECK(lacks.fact<PodmanLacks>() != nullptr);
  const auto fails = asked("500 Internal Server Error", R"({"message":"database is locked"})");
  CHECK(fails.message() == "database is locked");
  CHECK(fails.fact<PodmanLacks>() == nullptr);
  CHECK(asked("502 Bad Gateway", "oh").message() == "podman answered 502");
}
