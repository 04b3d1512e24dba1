#include "store/tokens.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "lib/base/file.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::store;
using kube::FakeServer;

namespace {

std::string review(const std::string& user, const std::string& audience = "image-store") {
  return fmt::format(
      R"({{"status":{{"authenticated":true,"audiences":["{}"],"user":{{"username":"{}","extra":{{"authentication.kubernetes.io/pod-name":["pilot-1"]}}}}}}}})",
      audience, user);
}
// A good one's, but for this.
std::string not_so(const std::string& authenticated) {
  auto text = review("system:serviceaccount:glidepod:glidepod-pilot");
  return text.replace(text.find("true"), 4, authenticated);
}
bool not_let_in(const Result<Account>& account) {
  return !account && account.error().fact<NotLetIn>() != nullptr;
}

// Asks in a thread, while the API answers in this one.
struct Scene {
  Loop loop = Loop::create().value();
  FakeServer api{loop};
  std::string answer = review("system:serviceaccount:glidepod:glidepod-pilot");
  int status = 201;
  std::unique_ptr<TokenReviews> tokens;

  Scene() {
    REQUIRE(replace_file(api.folder() + "/token", "own\n", 0600, Durable::no));
    api.on_request = [this](const FakeServer::Request&) { return FakeServer::json(status, answer); };
    tokens = std::make_unique<TokenReviews>(
        TokenReviews::Settings{{"http://localhost", api.socket(), api.folder() + "/token", {}},
                               "image-store",
                               {"glidepod/glidepod-pilot"}});
  }
  Result<Account> ask(const std::string& token) {
    std::optional<Result<Account>> account;
    std::atomic<bool> done = false;
    std::thread thread([&] {
      account = tokens->account_of(token);
      done = true;
    });
    while (!done) REQUIRE(loop.run_once(Milliseconds(5)));
    thread.join();
    return *account;
  }
};

}  // namespace

TEST_CASE("tokens: whose it is, by the API's word, which is believed for a while") {
  Scene scene;
  const auto account = scene.ask("abc");
  REQUIRE(account);
  CHECK(account->name_space == "glidepod");
  CHECK(account->name == "glidepod-pilot");
  CHECK(account->pod == "pilot-1");
  CHECK(scene.ask("abc"));
  REQUIRE(scene.api.requests.size() == 1);
  CHECK(scene.api.requests[0].target == "/apis/authentication.k8s.io/v1/tokenreviews");
  CHECK(scene.api.requests[0].headers.find("Authorization: Bearer own\r\n") != std::string::npos);
  CHECK(scene.api.requests[0].body.find(R"("audiences":["image-store"])") != std::string::npos);
  CHECK(scene.ask("another"));
  CHECK(scene.api.requests.size() == 2);
}

TEST_CASE("tokens: another account's, another audience's and a wrong one are not let in") {
  for (const auto& answer :
       {review("system:serviceaccount:glidepod:default"), review("system:serviceaccount:evil:glidepod-pilot"),
        review("system:serviceaccount:glidepod:glidepod-pilot:x"), review("admin"),
        review("system:serviceaccount:glidepod:glidepod-pilot", "https://kubernetes.default.svc"),
        std::string(R"({"status":{"authenticated":false,"error":"expired"}})"), not_so("false"),
        not_so(R"("true")"), not_so("null"), not_so("1")}) {
    Scene scene;
    scene.answer = answer;
    CHECK_MESSAGE(not_let_in(scene.ask("abc")), answer);
    CHECK(not_let_in(scene.ask("abc")));
    CHECK(scene.api.requests.size() == 1);  // a flood of it is none at the API
  }
}

TEST_CASE("tokens: an API that does not know now is no refusal, and asked again") {
  Scene scene;
  scene.status = 500;
  for (const std::string answer : {"", "{}"}) {
    scene.answer = answer;
    const auto account = scene.ask("abc");
    REQUIRE_FALSE(account);
    CHECK_FALSE(not_let_in(account));
  }
  CHECK(scene.api.requests.size() == 2);
  scene.status = 201;
  CHECK_FALSE(not_let_in(scene.ask("abc")));
}

TEST_CASE("tokens: none, and one without end, never reach the API") {
  Scene scene;
  CHECK(not_let_in(scene.ask("")));
  CHECK(not_let_in(scene.ask(std::string(20'000, 'x'))));
  CHECK(scene.api.requests.empty());
}

// The API never answers these: nobody runs its loop.
TEST_CASE(
    "tokens: while others are asked after, who is known does not wait, and no more are asked than eight") {
  Scene scene;
  REQUIRE(scene.ask("abc"));
  std::vector<std::thread> flood;
  flood.reserve(9);
  std::atomic<int> refused = 0;
  for (int i = 0; i < 9; ++i)
    flood.emplace_back([&scene, &refused, i] {
      const auto account = scene.tokens->account_of(fmt::format("wrong-{}", i));
      if (!account && account.error().message() == "8 tokens are being asked after already") ++refused;
    });
  while (refused == 0) std::this_thread::yield();
  CHECK(scene.tokens->account_of("abc"));
  CHECK(scene.api.requests.size() == 1);
  std::atomic<bool> done = false;
  std::thread end([&] {
    for (auto& each : flood) each.join();
    done = true;
  });
  while (!done) REQUIRE(scene.loop.run_once(Milliseconds(5)));
  end.join();
  CHECK(refused == 1);
  CHECK(scene.api.requests.size() == 9);
}
