#include "lib/http/transport.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string_view>

using namespace glidepod;
using namespace glidepod::http;

namespace {

// A name server that answers nobody before it is let go, but gives up like the C library's resolver.
struct NameServer {
  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0, answered = 0;
  bool silent = true;

  int answer() {
    std::unique_lock lock(mutex);
    ++asked;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(5), [this] { return !silent; });
    ++answered;
    changed.notify_all();
    return EAI_AGAIN;
  }
  bool has_been_asked() {
    const std::lock_guard lock(mutex);
    return asked > 0;
  }
  // Nobody asks it any more after this.
  void let_go() {
    std::unique_lock lock(mutex);
    silent = false;
    changed.notify_all();
    CHECK(changed.wait_for(lock, std::chrono::seconds(10), [this] { return answered == asked; }));
  }
};
NameServer* name_server = nullptr;

using Clock = std::chrono::steady_clock;

}  // namespace

// libcurl's threads call this one, in place of the C library's.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  if (name_server != nullptr && name != nullptr && std::string_view(name) == "silent.test")
    return name_server->answer();
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, found);
}

TEST_CASE("transport: nobody waits for a name that no server answers") {
  NameServer server;
  name_server = &server;
  Loop loop = Loop::create().value();
  std::optional<Result<Response>> answer;
  Clock::duration longest{};
  {
    const auto transport = Transport::create(loop).value();
    Request request;
    request.url = "http://silent.test/";
    std::unique_ptr<Operation> operation;
    const auto turn = [&](const auto& what) {
      const auto began = Clock::now();
      what();
      longest = std::max(longest, Clock::now() - began);
    };
    const auto start = [&] {
      operation =
          transport->start(request, {{}, [&](Result<Response> response) { answer = std::move(response); }});
    };
    const auto run_until = [&](const auto& done) {
      for (int i = 0; i < 1000 && !done(); ++i) turn([&] { REQUIRE(loop.run_once(Milliseconds(5)).ok()); });
      REQUIRE(done());
    };
    SUBCASE("when it is not asked for any more") {
      start();
      run_until([&] { return server.has_been_asked(); });
      turn([&] { operation.reset(); });
      CHECK_FALSE(answer.has_value());
    }
    SUBCASE("when its time is over") {
      request.timeout = Milliseconds(100);
      start();
      run_until([&] { return answer.has_value(); });
      const auto* lost = answer->error().fact<Lost>();
      REQUIRE(lost != nullptr);
      CHECK(lost->why == Lost::Why::timeout);
    }
  }
  CHECK(longest < std::chrono::seconds(1));
  server.let_go();
  name_server = nullptr;
}
