#include "store/door.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/http/blocking.hpp"
#include "store/digest.hpp"
#include "tests/store/image_writer.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::store;
using written::in_memory;

namespace {

const std::vector<std::string> k_reader = {
    "/bin/sh", "-c",
    R"(cat; printf '{"diff_id": "sha256:%064d", "architecture": "", "runscript": false}\n' 7 >&2)"};

struct SmallShelf : Shelf {
  std::atomic<int> puts = 0;
  Result<void> fails = {};
  std::shared_future<void> gate;  // nothing is put before it is open
  Result<bool> has(const std::string&) override { return true; }
  Result<std::optional<std::string>> find(const std::string&) override {
    return std::optional<std::string>();
  }
  Result<void> put(const std::string&, const std::string&) override {
    ++puts;
    if (gate.valid()) gate.wait();
    return fails;
  }
  Result<std::vector<std::string>> tags() override { return std::vector<std::string>(); }
  Result<void> remove(const std::string&, const std::string&) override { return {}; }
};

// Token "a" is pod a's, and so on; "away" cannot be told now.
struct SmallTokens : Tokens {
  Result<Account> account_of(const std::string& token) override {
    if (token == "away") return error("no answer from the API");
    if (token.size() != 1) return error("the token is not good").with(NotLetIn{});
    return Account{"glidepod", "glidepod-pilot", token};
  }
};

std::string key_of(const std::string& text) {
  Digest digest;
  digest.add(text);
  return digest.text().substr(7);
}

// The door in a thread with its loop; questions in this one.
struct Scene {
  TemporaryFolder folder;
  SmallShelf shelf;
  SmallTokens tokens;
  Keeper keeper{{folder.path + "/store", "localhost/files", k_reader}, shelf};
  Loop loop = Loop::create().value();
  Door door{loop, keeper, tokens};
  int port = 0;
  std::unique_ptr<Inbox> inbox = Inbox::create(loop).value();
  std::thread thread;

  explicit Scene(std::size_t each_pod = 16) {
    REQUIRE(keeper.prepare());
    const std::string file = folder.path + "/tls";
    auto made = Child::spawn(
        {.argv = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                  "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
                  "-keyout", file + ".key", "-out", file + ".crt"}});
    REQUIRE(made);
    REQUIRE(made->wait()->status.success());
    port = door.open({"127.0.0.1:0", file + ".crt", file + ".key", each_pod}).value();
    thread = std::thread([this] { CHECK(loop.run()); });
  }
  ~Scene() {
    inbox->post([this] { loop.stop(); });
    thread.join();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  http::Request request(const std::string& method, const std::string& path,
                        const std::string& token = "a") const {
    http::Request request;
    request.method = method;
    request.url = fmt::format("https://127.0.0.1:{}{}", port, path);
    request.ca_file = folder.path + "/tls.crt";
    request.timeout = Milliseconds(20'000);
    if (!token.empty()) request.authorization = "Bearer " + token;
    request.headers = {"Glidepod-Owner: alice"};
    return request;
  }
  // Brings a text under a key.
  http::Response bring(const std::string& text, const std::string& key,
                       const std::string& token = "a") const {
    auto put = request("PUT", "/v1/images/" + key, token);
    put.file = std::make_shared<Fd>(in_memory(text));
    put.file_size = text.size();
    put.go_ahead = Milliseconds(20'000);
    const auto answer = http::perform(std::move(put));
    if (!answer) FAIL(answer.error().message());
    return *answer;
  }
  http::Response bring(const std::string& text) const { return bring(text, key_of(text)); }
  int status(const std::string& method, const std::string& path, const std::string& token = "a") const {
    auto asked = request(method, path, token);
    if (method == "PUT") asked.body = "one";
    const auto answer = http::perform(std::move(asked));
    return answer ? answer->status : 0;
  }
  std::size_t left(const std::string& part) const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(folder.path + "/store/" + part))
      ++count;
    return count;
  }
  // What comes back for these bytes, without TLS' part in it: by openssl's client.
  enum class Then : std::uint8_t { waits, leaves };
  std::string say(const std::string& bytes, Then then = Then::waits) const {
    const Fd out = in_memory("");
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const Fd from(ends[0]);
    Fd to(ends[1]);
    auto child = Child::spawn({.argv = {"timeout", "10", "openssl", "s_client", "-quiet", "-verify_quiet",
                                        "-no_ign_eof", "-connect", fmt::format("127.0.0.1:{}", port)},
                               .stdin_fd = from.get(),
                               .stdout_fd = out.get(),
                               .stderr_fd = out.get()});
    REQUIRE(child);
    (void)write_all(to, bytes);
    if (then == Then::leaves) to.reset();
    (void)child->wait();
    to.reset();
    ::lseek(out.get(), 0, SEEK_SET);
    return read_all(out, "answer", 1 << 20).value();
  }
};

}  // namespace

TEST_CASE("door: a file is brought once, and its image is another one's who brings the same") {
  const Scene scene;
  const auto first = scene.bring("one");
  CHECK(first.status == 200);
  CHECK(first.body.starts_with(R"({"image":"localhost/files@sha256:)"));
  CHECK(scene.bring("one", key_of("one"), "b").body == first.body);
  CHECK(scene.shelf.puts == 1);
  CHECK(scene.bring("two").body != first.body);
  CHECK(scene.left("making") == 0);
}

TEST_CASE("door: what is known is told without the file") {
  const Scene scene;
  CHECK(scene.status("GET", "/v1/images/" + key_of("one")) == 404);
  const auto image = scene.bring("one").body;
  const auto asked = http::perform(scene.request("GET", "/v1/images/" + key_of("one")));
  CHECK(asked.value().body == image);
  CHECK(scene.status("HEAD", "/v1/images/" + key_of("one")) == 200);
  // It is said to be long, and never sent.
  auto put = scene.request("PUT", "/v1/images/" + key_of("one"));
  put.file = std::make_shared<Fd>(in_memory("one"));
  put.file_size = 1'000'000'000;
  put.go_ahead = Milliseconds(20'000);
  CHECK(http::perform(std::move(put)).value().body == image);
}

TEST_CASE("door: many who bring the same file at a time cost one conversion") {
  const Scene scene;
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      auto put = scene.request("PUT", "/v1/images/" + key_of("one"));
      put.file = std::make_shared<Fd>(in_memory("one"));
      put.file_size = 3;
      put.go_ahead = Milliseconds(20'000);
      const auto answer = http::perform(std::move(put));
      if (answer && answer->status == 200) ++good;
    });
  for (auto& thread : threads) thread.join();
  CHECK(good == 8);
  CHECK(scene.shelf.puts == 1);
}

TEST_CASE("attack: a request without a token, with another one's, or with one that cannot be told") {
  const Scene scene;
  const std::string path = "/v1/images/" + key_of("one");
  for (const char* method : {"PUT", "GET", "HEAD"}) {
    CHECK(scene.status(method, path, "") == 401);
    CHECK(scene.status(method, path, "someone's") == 401);
    CHECK(scene.status(method, path, "away") == 503);
  }
  CHECK(scene.shelf.puts == 0);
  CHECK(scene.left("known") == 0);
}

TEST_CASE("attack: a file under another one's hash is refused, and nothing of it stays") {
  const Scene scene;
  const auto forged = scene.bring("evil", key_of("good"));
  CHECK(forged.status == 409);
  CHECK(forged.body.find("it changed while it was read") != std::string::npos);
  CHECK(scene.shelf.puts == 0);
  CHECK(scene.left("known") == 0);
  CHECK(scene.left("making") == 0);
  CHECK(scene.bring("good").status == 200);
}

TEST_CASE("attack: a path that is no hash") {
  const Scene scene;
  const std::string key = key_of("one");
  for (const auto& path :
       {std::string("/"), std::string("/v1/images/"), "/v1/images/" + key + "/", "/v1/images/" + key + "0",
        "/v1/images/" + key.substr(1), "/v1/images/../" + key, "/v1/images/%2e%2e%2f" + key.substr(9),
        "/v1/images//" + key.substr(1), "/v1/images/" + std::string(64, 'A'), "/v2/images/" + key,
        "/v1/images/" + key.substr(1) + "%00", std::string("/v1/images/") + std::string(5000, 'a')}) {
    CHECK_MESSAGE(scene.status("PUT", path) == 404, path);
    CHECK_MESSAGE(scene.status("GET", path) == 404, path);
  }
  for (const char* method : {"DELETE", "POST", "PATCH", "OPTIONS"})
    CHECK(scene.status(method, "/v1/images/" + key) >= 400);
  CHECK(scene.left("known") == 0);
}

TEST_CASE("attack: headers without end, a length told twice, and one beyond all limits") {
  const Scene scene;
  const std::string head =
      "PUT /v1/images/" + key_of("one") + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\n";
  const std::string many = head + "X: " + std::string(200'000, 'x') + "\r\nContent-Length: 3\r\n\r\none";
  CHECK(scene.say(many).find("200 OK") == std::string::npos);
  CHECK(scene.say(head + "Content-Length: 3\r\nContent-Length: 5\r\n\r\none..").find("400") !=
        std::string::npos);
  CHECK(scene.say(head + "Content-Length: -1\r\n\r\none").find("400") != std::string::npos);
  CHECK(scene.say(head + "Content-Length: 99999999999999\r\n\r\none").find("413") != std::string::npos);
  CHECK(scene.say(head + "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n").find("411") !=
        std::string::npos);
  CHECK(scene.say(head + "\r\n").find("411") != std::string::npos);
  CHECK(scene.shelf.puts == 0);
  CHECK(scene.bring("one").status == 200);
}

TEST_CASE("attack: an upload that ends early leaves nothing, and holds up nobody") {
  const Scene scene;
  (void)scene.say("PUT /v1/images/" + key_of("one") +
                      " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nContent-Length: 1000000\r\n\r\non",
                  Scene::Then::leaves);
  CHECK(scene.left("spool") == 0);
  CHECK(scene.bring("one").status == 200);
}

TEST_CASE("attack: one pod has so many requests at a time, and the others go on") {
  Scene scene(1);
  std::promise<void> open;
  scene.shelf.gate = open.get_future();
  std::atomic<int> first = 0;
  std::thread slow([&] { first = scene.bring("one").status; });
  while (scene.shelf.puts == 0) std::this_thread::yield();
  const auto refused = scene.bring("two");
  CHECK(refused.status == 429);
  CHECK(refused.body.find("pod glidepod/a has 1 requests under way") != std::string::npos);
  CHECK(scene.status("GET", "/v1/images/" + key_of("two")) == 429);
  CHECK(scene.status("GET", "/v1/images/" + key_of("two"), "b") == 404);
  open.set_value();
  slow.join();
  CHECK(first == 200);
  CHECK(scene.bring("two").status == 200);
}

TEST_CASE("attack: what is no TLS is no request") {
  const Scene scene;
  auto plain = scene.request("GET", "/healthz");
  plain.url = fmt::format("http://127.0.0.1:{}/healthz", scene.port);
  CHECK_FALSE(http::perform(std::move(plain)));
  CHECK(scene.status("GET", "/healthz", "") == 200);
}

TEST_CASE("door: whose fault it is") {
  Scene scene;
  scene.shelf.fails = Error("the registry: 507 no room");
  const auto full = scene.bring("one");
  CHECK(full.status == 503);
  CHECK(full.body.find(R"("fault":"infrastructure")") != std::string::npos);
  scene.shelf.fails = error("the image is encrypted").with(BadImage{});
  const auto bad = scene.bring("one");
  CHECK(bad.status == 422);
  CHECK(bad.body == R"({"error":"the image is encrypted","fault":"user"})"
                    "\n");
  CHECK(scene.left("known") == 0);
}

TEST_CASE("door: a new certificate counts from the next connection on, and a wrong pair does not") {
  const Scene scene;
  CHECK(scene.status("GET", "/healthz", "") == 200);
  const std::string file = scene.folder.path + "/tls";
  const auto kept = read_file(file + ".key").value();
  REQUIRE(replace_file(file + ".key", "nonsense", 0600, Durable::no));
  CHECK(scene.status("GET", "/healthz", "") == 200);
  REQUIRE(replace_file(file + ".key", kept, 0600, Durable::no));
  CHECK(scene.status("GET", "/healthz", "") == 200);
}
