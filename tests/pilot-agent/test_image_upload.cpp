#include "pilot-agent/image_upload.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using kube::FakeServer;

namespace {

// Of "content".
constexpr const char* k_path = "/v1/images/ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
constexpr const char* k_image = R"({"image":"localhost/x@sha256:1"})";

Fd content() {
  Fd file(::memfd_create("app.sif", MFD_CLOEXEC));
  REQUIRE(write_all(file, "content"));
  return file;
}

struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  Milliseconds trouble{60'000};
  std::unique_ptr<ImageUploads> uploads;
  std::vector<Result<std::string>> answers;
  std::unique_ptr<StoreQuestion> question;
  std::string owner = "alice";

  void ask(Milliseconds patience = std::chrono::seconds(20)) {
    // Over a socket, where there is no TLS to be had.
    uploads = ImageUploads::create(
                  loop, {"http://store.test/", server.folder() + "/token", {}, server.socket(), trouble})
                  .value();
    question = uploads->ask(content(), owner, patience, [this](const Result<std::string>& image) {
      answers.push_back(image);
      question.reset();
    });
    CHECK(answers.empty());
  }
  const Result<std::string>& answer() {
    for (int i = 0; i < 1000 && answers.empty(); ++i) REQUIRE(loop.run_once(Milliseconds(5'000)));
    REQUIRE(answers.size() == 1);
    return answers[0];
  }
  // The answer to every request.
  void answers_with(int status, const std::string& body) {
    server.on_request = [=](const FakeServer::Request&) { return FakeServer::json(status, body); };
  }
  bool users_fault() { return answer().error().fact<ImageQuestion::UsersFault>() != nullptr; }
};

}  // namespace

TEST_CASE("image upload: the file goes with its hash, its owner and the pilot's token") {
  Scene scene;
  REQUIRE(replace_file(scene.server.folder() + "/token", "secret\n", 0600, Durable::no));
  scene.answers_with(200, k_image);
  scene.ask();
  CHECK(scene.answer().value() == "localhost/x@sha256:1");
  REQUIRE(scene.server.requests.size() == 1);
  const auto& request = scene.server.requests[0];
  CHECK(request.method == "PUT");
  CHECK(request.target == k_path);
  CHECK(request.body == "content");
  CHECK(request.headers.find("Authorization: Bearer secret\r\n") != std::string::npos);
  CHECK(request.headers.find("Glidepod-Owner: alice\r\n") != std::string::npos);
}

TEST_CASE("attack: an owner's name is one line of plain letters, and of no more than a hundred") {
  const std::string name(90, 'a');
  Scene scene;
  scene.owner = name + "\r\x01\u00fc" + name + "\nGlidepod-Owner: bob";
  scene.answers_with(200, k_image);
  scene.ask();
  CHECK(scene.answer());
  REQUIRE(scene.server.requests.size() == 1);
  const std::string& headers = scene.server.requests[0].headers;
  CHECK(headers.find("Glidepod-Owner: " + name + "  \\xc3\\xbcaaaaaa\r\n") != std::string::npos);
  CHECK(headers.find("bob") == std::string::npos);
}

TEST_CASE("attack: an answer without end is none, and nobody's fault") {
  Scene scene;
  scene.trouble = Milliseconds(0);
  scene.answers_with(200, k_image + std::string(100'000, ' '));
  scene.ask();
  CHECK_FALSE(scene.users_fault());
  CHECK(scene.answer().error().message() ==
        "the image store does not answer: answer longer than 65536 bytes");
}

TEST_CASE("image upload: what the store knows is not sent") {
  Scene scene;
  int sent = 0;
  scene.server.on_expect = [](const FakeServer::Request&) {
    auto reply = FakeServer::json(200, k_image, "Connection: close\r\n");
    reply.close = true;
    return reply;
  };
  scene.server.on_request = [&](const FakeServer::Request&) {
    ++sent;
    return FakeServer::json(500, "");
  };
  scene.ask();
  CHECK(scene.answer().value() == "localhost/x@sha256:1");
  CHECK(sent == 0);
}

TEST_CASE("image upload: what is the image's fault is the user's, with the store's sentence") {
  Scene scene;
  scene.answers_with(422, R"({"error":"the image is encrypted","fault":"user"})");
  scene.ask();
  CHECK(scene.users_fault());
  CHECK(scene.answer().error().message() == "the image is encrypted");
  CHECK(scene.server.requests.size() == 1);
}

TEST_CASE(
    "image upload: a store that is full, or a file that changed, is nobody's fault and not asked again") {
  for (const int status : {409, 507}) {
    Scene scene;
    scene.answers_with(status, R"({"error":"no room","fault":"infrastructure"})");
    scene.ask();
    CHECK_FALSE(scene.users_fault());
    CHECK(scene.answer().error().message() == fmt::format("the image store: {} no room", status));
    CHECK(scene.server.requests.size() == 1);
  }
}

TEST_CASE("image upload: a store that is away for a moment is asked again") {
  Scene scene;
  scene.server.on_request = [&](const FakeServer::Request&) {
    if (scene.server.requests.size() == 1) return FakeServer::Reply{"", true};
    if (scene.server.requests.size() == 2) return FakeServer::json(503, R"({"error":"x"})");
    return FakeServer::json(200, k_image);
  };
  scene.ask();
  CHECK(scene.answer().value() == "localhost/x@sha256:1");
  CHECK(scene.server.requests.size() == 3);
}

TEST_CASE("image upload: a store that is busy has no trouble, and is waited for") {
  Scene scene;
  scene.trouble = Milliseconds(0);
  scene.server.on_request = [&](const FakeServer::Request&) {
    return scene.server.requests.size() == 1 ? FakeServer::json(429, R"({"error":"busy"})")
                                             : FakeServer::json(200, k_image);
  };
  scene.ask();
  REQUIRE(scene.answer());
  CHECK(scene.answer().value() == "localhost/x@sha256:1");
}

TEST_CASE("image upload: a second outage counts from its own beginning") {
  Scene scene;
  scene.trouble = Milliseconds(400);
  scene.server.on_request = [&](const FakeServer::Request& request) {
    if (scene.server.requests.size() == 1) return FakeServer::Reply{"", true};
    if (scene.server.requests.size() > 2) return FakeServer::json(200, k_image);
    // It takes the file, and is gone before it answers.
    scene.loop.after(Milliseconds(450),
                     [&scene, id = request.connection] { scene.server.send(id, "no answer\r\n\r\n"); });
    return FakeServer::Reply{};
  };
  scene.ask();
  REQUIRE(scene.answer());
  CHECK(scene.answer().value() == "localhost/x@sha256:1");
  CHECK(scene.server.requests.size() == 3);
}

TEST_CASE("image upload: one that stays away, or knows not who asks, is nobody's fault") {
  Scene gone;
  gone.trouble = Milliseconds(300);
  gone.server.on_request = [](const FakeServer::Request&) { return FakeServer::Reply{"", true}; };
  gone.ask();
  CHECK_FALSE(gone.users_fault());
  CHECK(gone.answer().error().message().starts_with("the image store does not answer: "));
  CHECK(gone.server.requests.size() > 1);
  Scene refused;
  refused.answers_with(401, R"({"error":"the token is not good: x","fault":"infrastructure"})");
  refused.ask();
  CHECK_FALSE(refused.users_fault());
  CHECK(refused.answer().error().message() == "the image store: 401 the token is not good: x");
}

TEST_CASE("image upload: nonsense is no image, and nobody's fault") {
  for (const std::string text : {"", "no json", "{}", R"({"image":7})"}) {
    Scene scene;
    scene.answers_with(200, text);
    scene.ask();
    CHECK_FALSE(scene.users_fault());
    CHECK(scene.answer().error().message() == "the image store's answer cannot be understood");
  }
}

TEST_CASE("image upload: a question that is taken back is not answered") {
  Scene scene;
  scene.answers_with(200, k_image);
  scene.ask();
  scene.question.reset();
  for (int i = 0; i < 5; ++i) REQUIRE(scene.loop.run_once(Milliseconds(20)));
  CHECK(scene.answers.empty());
}
