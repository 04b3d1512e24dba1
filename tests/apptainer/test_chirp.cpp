#include "pilot-agent/apptainer/chirp.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;
using namespace std::chrono_literals;

namespace {

// A sandbox, and where a starter would listen, as src/condor_starter.V6.1/io_proxy_handler.cpp does: an
// answer a line.
struct Starter {
  TemporaryFolder folder;
  const std::string& sandbox = folder.path;
  Fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port = 0;
  std::string heard;
  std::thread thread;

  Starter() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener.get(), 4) == 0);
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    config("127.0.0.1 " + std::to_string(port) + " c00k1e\n");
  }
  ~Starter() {
    if (thread.joinable()) thread.join();
  }
  std::string path() const { return sandbox + "/" + k_chirp_config; }
  void config(const std::string& text) const { REQUIRE(replace_file(path(), text, 0600, Durable::no).ok()); }
  // Answers so many lines, then closes.
  void serve(int lines) {
    thread = std::thread([this, lines] {
      const Fd peer(::accept(listener.get(), nullptr, nullptr));
      for (int answered = 0; answered < lines;) {
        char c = 0;
        if (::read(peer.get(), &c, 1) != 1) return;
        heard += c;
        if (c == '\n' && ++answered > 0) (void)write_all(peer, "0\n");
      }
    });
  }
};

const wire::Ran k_ran{"payload-1", "sha256:0123", "switched", 1'234'567};

}  // namespace

TEST_CASE("chirp: what ran is told, each as one word") {
  Starter starter;
  starter.serve(5);
  CHECK(tell_job_ad(starter.sandbox, k_ran, "", 5s).ok());
  starter.thread.join();
  CHECK(starter.heard ==
        "cookie c00k1e\n"
        "set_job_attr_delayed ChirpGlidepodContainer \"payload-1\"\n"
        "set_job_attr_delayed ChirpGlidepodDigest \"sha256:0123\"\n"
        "set_job_attr_delayed ChirpGlidepodHow \"switched\"\n"
        "set_job_attr_delayed ChirpGlidepodBindTime 1.235\n");
}

TEST_CASE("chirp: what is not known, or is more than a word, is left out") {
  Starter starter;
  starter.serve(3);
  CHECK(tell_job_ad(starter.sandbox, {"a b\nset_job_attr_delayed X 1", "", "warm", 0}, "", 5s).ok());
  starter.thread.join();
  CHECK(starter.heard ==
        "cookie c00k1e\n"
        "set_job_attr_delayed ChirpGlidepodHow \"warm\"\n"
        "set_job_attr_delayed ChirpGlidepodBindTime 0.000\n");
}

TEST_CASE("chirp: a starter that does not answer, or goes, costs the limit and no more") {
  Starter starter;
  const auto began = Loop::now();
  CHECK_FALSE(tell_job_ad(starter.sandbox, k_ran, "", 100ms).ok());
  CHECK(Loop::now() - began >= 100ms);
  CHECK(Loop::now() - began < 5s);
  Starter leaves;
  leaves.serve(2);
  CHECK_FALSE(tell_job_ad(leaves.sandbox, k_ran, "", 5s).ok());
}

TEST_CASE("chirp: the sandbox is the job's, whatever lies in it") {
  Starter starter;
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1 0 c", "127.0.0.1 70000 c", "localhost 1 c", "a b c d", "1 2 3\n4"}) {
    CAPTURE(text);
    starter.config(text);
    CHECK_FALSE(tell_job_ad(starter.sandbox, k_ran, "", 1s).ok());
  }
  starter.config(std::string(100'000, 'x'));
  CHECK_FALSE(tell_job_ad(starter.sandbox, k_ran, "", 1s).ok());
  REQUIRE(::unlink(starter.path().c_str()) == 0);
  CHECK_FALSE(tell_job_ad(starter.sandbox, k_ran, "", 1s).ok());
  REQUIRE(::symlink("/etc/hostname", starter.path().c_str()) == 0);
  CHECK_FALSE(tell_job_ad(starter.sandbox, k_ran, "", 1s).ok());
  REQUIRE(::unlink(starter.path().c_str()) == 0);
  REQUIRE(::mkfifo(starter.path().c_str(), 0600) == 0);
  CHECK_FALSE(tell_job_ad(starter.sandbox, k_ran, "", 1s).ok());
}

TEST_CASE("chirp: what was set aside is told also where nothing is known of the container") {
  Starter starter;
  starter.serve(4);
  CHECK(tell_job_ad(starter.sandbox, {"", "", "warm", 0}, "my fifo, a\\x0ab", 5s).ok());
  starter.thread.join();
  CHECK(starter.heard ==
        "cookie c00k1e\n"
        "set_job_attr_delayed ChirpGlidepodHow \"warm\"\n"
        "set_job_attr_delayed ChirpGlidepodSetAside \"my\\ fifo,\\ a\\\\\\\\x0ab\"\n"
        "ulog not\\ brought\\ back\\ (pipes,\\ sockets,\\ devices\\ or\\ links\\ to\\ them):\\ my\\ fifo,\\ "
        "a\\\\x0ab\n");
}
