#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/http/exchange.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::http;

namespace {

// A certificate for 127.0.0.1 that is its own authority, with its key: NAME in the folder.
void make_certificate(const std::string& file) {
  auto made = Child::spawn(
      {.argv = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", file + ".key", "-out", file + ".crt"}});
  REQUIRE(made.ok());
  REQUIRE(made.value().wait().value().status.success());
}

sockaddr_in local(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::uint16_t free_port() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = local(0);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

bool answers(std::uint16_t port) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = local(port);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Answers each request with 200, and closes.
class TlsServer {
 public:
  TlsServer(const std::string& certificate, std::uint16_t port)
      : null_(::open("/dev/null", O_RDWR | O_CLOEXEC)) {
    child_ =
        Child::spawn({.argv = {"openssl", "s_server", "-www", "-accept", fmt::format("127.0.0.1:{}", port),
                               "-cert", certificate + ".crt", "-key", certificate + ".key"},
                      .environment = {},
                      .stdin_fd = null_.get(),
                      .stdout_fd = null_.get(),
                      .stderr_fd = null_.get(),
                      .parent_death_signal = SIGKILL})
            .value();
    for (int i = 0; i < 500 && !answers(port); ++i) ::usleep(20'000);
    REQUIRE(answers(port));
  }
  ~TlsServer() {
    if (child_->signal(SIGKILL)) (void)child_->wait();
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

 private:
  Fd null_;
  std::optional<Child> child_;
};

}  // namespace

// As the kubelet replaces ca.crt of a service account, under a process that runs for months.
TEST_CASE("tls: a replaced file of authorities counts from the next connection on") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name) { return folder.path + '/' + name; };
  make_certificate(file("old"));
  make_certificate(file("new"));
  const auto use = [&](const char* name) {
    std::filesystem::copy_file(file(name), file("ca.crt.next"));
    std::filesystem::rename(file("ca.crt.next"), file("ca.crt"));
  };
  Loop loop = Loop::create().value();
  const auto transport = Transport::create(loop).value();
  const auto port = free_port();
  const auto status = [&] {
    std::optional<Result<Response>> answer;
    Request request;
    request.url = fmt::format("https://127.0.0.1:{}/", port);
    request.ca_file = file("ca.crt");
    request.timeout = Milliseconds(5'000);
    const auto call = transport->start(
        std::move(request), {.data = {}, .done = [&](Result<Response> got) { answer = std::move(got); }});
    for (int i = 0; i < 1000 && !answer; ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    return answer && answer->ok() ? answer->value().status : 0;
  };
  use("old.crt");
  {
    const TlsServer server(file("old"), port);
    CHECK(status() == 200);
  }
  const TlsServer server(file("new"), port);
  CHECK(status() == 0);
  use("new.crt");
  CHECK(status() == 200);
  use("old.crt");
  CHECK(status() == 0);
}
