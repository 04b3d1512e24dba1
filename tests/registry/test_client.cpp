#include "lib/registry/client.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "tests/kube/fake_server.hpp"

using namespace glidepod;
using namespace glidepod::registry;
using kube::FakeServer;

namespace {

const std::string k_config = R"({"config":{"Entrypoint":["/entry"],"Cmd":["cmd"]}})";

std::string manifest_of(const std::string& config) {
  return fmt::format(
      R"({{"schemaVersion":2,"config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"{}","size":{}}}}})",
      digest_of(config), config.size());
}
std::string index_of(const std::string& manifest, const std::string& architecture) {
  return fmt::format(
      R"({{"manifests":[{{"digest":"{}","size":{},"platform":{{"os":"linux","architecture":"{}"}}}}]}})",
      digest_of(manifest), manifest.size(), architecture);
}

std::string header(const FakeServer::Request& request, const std::string& name) {
  const auto at = request.headers.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 4;
  return request.headers.substr(begin, request.headers.find("\r\n", begin) - begin);
}
std::string where(const FakeServer::Request& request) {
  return header(request, "Host") + request.target;
}

// Every host is one server, which knows who is meant by the Host header.
struct Fixture {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::map<std::string, FakeServer::Reply> replies;  // by host and path
  std::vector<std::string> insecure = {"reg.test", "cdn.test", "auth.test", "registry-1.docker.io"};
  std::unique_ptr<Client> client;
  std::unique_ptr<Client::Operation> operation;
  std::optional<Result<ImageCommand>> answer;

  Fixture() {
    server.on_request = [this](const FakeServer::Request& request) {
      const auto found = replies.find(where(request));
      return found != replies.end()
                 ? found->second
                 : FakeServer::json(
                       404, R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})");
    };
    serve("reg.test", manifest_of(k_config));
  }
  // An image x:1 with a manifest, and every blob.
  void serve(const std::string& host, const std::string& manifest) {
    replies[host + "/v2/x/manifests/1"] = FakeServer::json(200, manifest);
    replies[host + "/v2/x/blobs/" + digest_of(k_config)] = FakeServer::json(200, k_config);
  }
  void ask(const std::string& image, Milliseconds patience = std::chrono::seconds(20)) {
    answer.reset();
    client = std::make_unique<Client>(
        loop, Options{server.folder() + "/config.json", insecure, {"amd64", {}}, server.socket()});
    operation = client->ask(image, std::chrono::steady_clock::now() + patience,
                            [this](Result<ImageCommand> got) { answer = std::move(got); });
    CHECK_FALSE(answer.has_value());
    for (int i = 0; i < 1000 && !answer; ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(answer.has_value());
  }
  void credentials(const std::string& text) {
    REQUIRE(replace_file(server.folder() + "/config.json", text, 0600).ok());
  }
  const ImageCommand& command() const {
    if (!answer->ok()) FAIL(answer->error().message());
    return answer->value();
  }
  // Why it failed for good.
  std::string refused() const {
    REQUIRE_FALSE(answer->ok());
    CHECK(registry::refused(answer->error()));
    return answer->error().message();
  }
  std::vector<std::string> asked() const {
    std::vector<std::string> result;
    for (const auto& request : server.requests) result.push_back(where(request));
    return result;
  }
};

FakeServer::Reply redirect(const std::string& location) {
  return {"HTTP/1.1 307 X\r\nContent-Length: 0\r\nLocation: " + location + "\r\n\r\n"};
}
FakeServer::Reply unauthorized(const std::string& challenge) {
  return FakeServer::json(401, R"({"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]})",
                          "WWW-Authenticate: " + challenge + "\r\n");
}

}  // namespace

TEST_CASE("registry: manifest and configuration, by tag, by digest and through an index") {
  Fixture f;
  f.ask("reg.test/x:1");
  CHECK(f.command() == ImageCommand{{"/entry"}, {"cmd"}});
  CHECK(f.asked() ==
        std::vector<std::string>{"reg.test/v2/x/manifests/1", "reg.test/v2/x/blobs/" + digest_of(k_config)});
  CHECK(header(f.server.requests[0], "Accept").find("vnd.docker.distribution.manifest.list.v2+json") !=
        std::string::npos);
  CHECK(header(f.server.requests[0], "Authorization").empty());

  const std::string manifest = manifest_of(k_config), index = index_of(manifest, "amd64");
  f.replies["reg.test/v2/x/manifests/" + digest_of(manifest)] = FakeServer::json(200, manifest);
  f.replies["reg.test/v2/x/manifests/" + digest_of(index)] = FakeServer::json(200, index);
  f.ask("reg.test/x@" + digest_of(manifest));
  CHECK(f.command().entrypoint == std::vector<std::string>{"/entry"});
  f.ask("reg.test/x:ignored@" + digest_of(index));
  CHECK(f.command().cmd == std::vector<std::string>{"cmd"});

  f.replies["registry-1.docker.io/v2/library/x/manifests/1"] = FakeServer::json(200, manifest);
  f.replies["registry-1.docker.io/v2/library/x/blobs/" + digest_of(k_config)] =
      FakeServer::json(200, k_config);
  f.ask("x:1");
  CHECK(f.command().entrypoint == std::vector<std::string>{"/entry"});
}

TEST_CASE("registry: its refusals are the user's, in its own words") {
  Fixture f;
  f.ask("reg.test/x:9");
  CHECK(
      f.refused() ==
      "the image's own command (ENTRYPOINT, CMD) could not be read: 404 MANIFEST_UNKNOWN: manifest unknown");
  f.replies["reg.test/v2/x/manifests/1"] =
      FakeServer::json(403, R"({"errors":[{"code":"DENIED","message":"not yours"}]})");
  f.ask("reg.test/x:1");
  CHECK(f.refused().find("403 DENIED: not yours") != std::string::npos);
  f.replies["reg.test/v2/x/manifests/1"] = FakeServer::json(200, index_of("m", "s390x"));
  f.ask("reg.test/x:1");
  CHECK(f.refused().find("it has no linux/amd64 variant; what it has: linux/s390x") != std::string::npos);
  f.ask("not an image");
  CHECK(f.refused().find("invalid reference format") != std::string::npos);
}

TEST_CASE("registry: what was not asked for is not believed") {
  Fixture f;
  const std::string manifest = manifest_of(k_config), other = manifest_of("{}");
  f.replies["reg.test/v2/x/manifests/" + digest_of(manifest)] = FakeServer::json(200, other);
  f.ask("reg.test/x@" + digest_of(manifest));
  CHECK(f.refused().find(", not " + digest_of(manifest)) != std::string::npos);
  f.replies["reg.test/v2/x/blobs/" + digest_of(k_config)] =
      FakeServer::json(200, std::string(k_config.size(), ' '));
  f.ask("reg.test/x:1");
  CHECK(f.refused().find(", not " + digest_of(k_config)) != std::string::npos);
  f.replies["reg.test/v2/x/manifests/1"] =
      FakeServer::json(200, manifest, "Docker-Content-Digest: " + digest_of(other) + "\r\n");
  f.ask("reg.test/x:1");
  CHECK(f.refused().find(", not " + digest_of(other)) != std::string::npos);
  for (const char* garbage : {"", "\x01\x02", "<html>", "[[[[", "{\"manifests\":7}"}) {
    f.replies["reg.test/v2/x/manifests/1"] = FakeServer::json(200, garbage);
    f.ask("reg.test/x:1");
    f.refused();
  }
}

TEST_CASE("registry: a token, with credentials and without") {
  Fixture f;
  const std::string manifests = "reg.test/v2/x/manifests/1",
                    blobs = "reg.test/v2/x/blobs/" + digest_of(k_config);
  const std::string token = "auth.test/token?service=reg&scope=repository%3ax%3apull";
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (where(request) == token) return FakeServer::json(200, R"({"token":"TOKEN"})");
    if (header(request, "Authorization") != "Bearer TOKEN")
      return unauthorized(R"(Bearer realm="http://auth.test/token",service="reg",scope="repository:x:pull")");
    return f.replies.at(where(request));
  };
  f.ask("reg.test/x:1");
  CHECK(f.command().entrypoint == std::vector<std::string>{"/entry"});
  CHECK(f.asked() == std::vector<std::string>{manifests, token, manifests, blobs});
  CHECK(header(f.server.requests[1], "Authorization").empty());

  f.server.requests.clear();
  f.credentials(R"({"auths":{"reg.test":{"auth":"c2VjcmV0"}}})");
  f.ask("reg.test/x:1");
  (void)f.command();
  CHECK(header(f.server.requests[0], "Authorization").empty());
  CHECK(header(f.server.requests[1], "Authorization") == "Basic c2VjcmV0");
  CHECK(header(f.server.requests[2], "Authorization") == "Bearer TOKEN");
}

TEST_CASE("registry: credentials are shown once, and only to who they are for") {
  Fixture f;
  f.credentials(R"({"auths":{"reg.test":{"auth":"c2VjcmV0"}}})");
  f.replies["reg.test/v2/x/manifests/1"] = unauthorized(R"(Basic realm="x")");
  f.ask("reg.test/x:1");
  CHECK(f.refused().find("401 UNAUTHORIZED: authentication required") != std::string::npos);
  REQUIRE(f.server.requests.size() == 2);
  CHECK(header(f.server.requests[1], "Authorization") == "Basic c2VjcmV0");

  // A registry that leads to another one's challenge.
  f.server.requests.clear();
  f.replies["cdn.test/v2/x/manifests/1"] = unauthorized(R"(Basic realm="x")");
  f.replies["auth.test/v2/x/manifests/1"] = redirect("http://reg.test/v2/x/manifests/1");
  f.ask("auth.test/x:1");
  f.refused();
  for (const auto& request : f.server.requests) CHECK(header(request, "Authorization").empty());

  f.server.requests.clear();
  f.replies["reg.test/v2/x/manifests/1"] = unauthorized(R"(Bearer realm="http://elsewhere.test/token")");
  f.ask("reg.test/x:1");
  CHECK(f.refused().find("redirects to elsewhere.test without HTTPS") != std::string::npos);
  CHECK(f.server.requests.size() == 1);
  for (const char* realm : {"file:///etc/passwd", "", "x"}) {
    f.replies["reg.test/v2/x/manifests/1"] = unauthorized(fmt::format(R"(Bearer realm="{}")", realm));
    f.ask("reg.test/x:1");
    f.refused();
  }
}

TEST_CASE("registry: redirects are followed, without the credentials") {
  Fixture f;
  f.credentials(R"({"auths":{"reg.test":{"auth":"c2VjcmV0"}}})");
  const std::string blob = "/v2/x/blobs/" + digest_of(k_config);
  f.server.on_request = [&](const FakeServer::Request& request) {
    const std::string at = where(request);
    if (at == "cdn.test/blob?signature=1") return FakeServer::json(200, k_config);
    if (header(request, "Authorization") != "Basic c2VjcmV0") return unauthorized(R"(Basic realm="x")");
    if (at == "reg.test" + blob) return redirect("/moved");
    if (at == "reg.test/moved") return redirect("http://cdn.test/blob?signature=1");
    return f.replies.at(at);
  };
  f.ask("reg.test/x:1");
  CHECK(f.command().entrypoint == std::vector<std::string>{"/entry"});
  CHECK(where(f.server.requests.back()) == "cdn.test/blob?signature=1");
  CHECK(header(f.server.requests.back(), "Authorization").empty());
  CHECK(header(f.server.requests[f.server.requests.size() - 2], "Authorization") == "Basic c2VjcmV0");

  f.server.on_request = [&](const FakeServer::Request&) { return redirect("/again"); };
  f.ask("reg.test/x:1");
  CHECK(f.refused().find("redirects too often") != std::string::npos);
  for (const char* bad :
       {"http://plain.test/x", "file:///etc/passwd", "http://user:secret@cdn.test/x", "ftp://cdn.test/"}) {
    CAPTURE(bad);
    f.server.on_request = [&](const FakeServer::Request&) { return redirect(bad); };
    f.server.requests.clear();
    f.ask("reg.test/x:1");
    f.refused();
    CHECK(f.server.requests.size() == 1);
  }
}

TEST_CASE("registry: what may pass is tried again, until the patience ends") {
  Fixture f;
  int failures = 0;
  std::vector<FakeServer::Reply> bad = {
      FakeServer::json(429, R"({"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]})"),
      {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", true}};
  f.server.on_request = [&](const FakeServer::Request& request) {
    return failures < static_cast<int>(bad.size()) ? bad[static_cast<std::size_t>(failures++)]
                                                   : f.replies.at(where(request));
  };
  f.ask("reg.test/x:1");
  CHECK(f.command().entrypoint == std::vector<std::string>{"/entry"});

  for (const auto& reply :
       {FakeServer::json(429, "", "Retry-After: 60\r\n"), FakeServer::json(500, "broken")}) {
    f.server.on_request = [&](const FakeServer::Request&) { return reply; };
    f.ask("reg.test/x:1", Milliseconds(150));
    REQUIRE_FALSE(f.answer->ok());
    CHECK_FALSE(registry::refused(f.answer->error()));
  }
  f.server.requests.clear();
  f.server.on_request = [&](const FakeServer::Request&) {
    return FakeServer::json(429, "", "Retry-After: 60\r\n");
  };
  f.ask("reg.test/x:1", std::chrono::seconds(30));
  CHECK(f.server.requests.size() == 1);  // a pause longer than the patience is not begun
}

TEST_CASE("registry: an answer without end, and an index of indexes") {
  Fixture f;
  f.server.on_request = [&](const FakeServer::Request&) {
    return FakeServer::Reply{"HTTP/1.1 200 OK\r\nX: " + std::string(150'000, 'x') +
                             "\r\nContent-Length: 0\r\n\r\n"};
  };
  f.ask("reg.test/x:1", Milliseconds(150));
  CHECK_FALSE(f.answer->ok());
  f.server.on_request = [&](const FakeServer::Request&) {
    return FakeServer::Reply{fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1 << 30)};
  };
  f.ask("reg.test/x:1", Milliseconds(150));
  CHECK_FALSE(f.answer->ok());

  f.server.on_request = nullptr;
  std::string document = manifest_of(k_config);
  std::map<std::string, std::string> served;
  for (int i = 0; i < 4; ++i) {
    served["reg.test/v2/x/manifests/" + digest_of(document)] = document;
    document = index_of(document, "amd64");
  }
  f.server.on_request = [&](const FakeServer::Request& request) {
    const auto found = served.find(where(request));
    return FakeServer::json(200, found == served.end() ? document : found->second);
  };
  f.ask("reg.test/x:1");
  CHECK(f.refused().find("leads to another index") != std::string::npos);
}

TEST_CASE("registry: link-local addresses are not contacted, HTTPS is what a registry speaks") {
  Fixture f;
  for (const char* host : {"169.254.169.254:1", "[fe80::1]:1", "[::ffff:169.254.169.254]:1"}) {
    CAPTURE(host);
    Client client(f.loop, Options{{}, {host}, {"amd64", {}}, {}});
    std::optional<Result<ImageCommand>> answer;
    const auto operation =
        client.ask(std::string(host) + "/x:1", std::chrono::steady_clock::now() + std::chrono::seconds(20),
                   [&](Result<ImageCommand> got) { answer = std::move(got); });
    for (int i = 0; i < 1000 && !answer; ++i) REQUIRE(f.loop.run_once(Milliseconds(1'000)).ok());
    REQUIRE(answer.has_value());
    REQUIRE_FALSE(answer->ok());
    CHECK(answer->error().message().find("not contacted") != std::string::npos);
    CHECK(registry::refused(answer->error()));
  }
  // A TLS greeting is no HTTP request.
  f.insecure.clear();
  f.ask("reg.test/x:1", Milliseconds(150));
  CHECK_FALSE(f.answer->ok());
  CHECK(f.server.requests.empty());
}

TEST_CASE("registry: a question that is taken back is not answered") {
  Fixture f;
  f.client = std::make_unique<Client>(f.loop, Options{{}, f.insecure, {"amd64", {}}, f.server.socket()});
  bool answered = false;
  auto operation = f.client->ask("reg.test/x:1", std::chrono::steady_clock::now() + std::chrono::seconds(5),
                                 [&](const Result<ImageCommand>&) { answered = true; });
  f.server.on_request = [&](const FakeServer::Request&) {
    operation.reset();
    return FakeServer::json(200, "{}");
  };
  for (int i = 0; i < 20; ++i) REQUIRE(f.loop.run_once(Milliseconds(5)).ok());
  CHECK(f.server.requests.size() == 1);
  CHECK_FALSE(answered);
}

namespace {

const std::string k_file = "a SIF";
std::string file_manifest(const std::string& kind = "application/vnd.sylabs.sif.layer.v1.sif") {
  return fmt::format(
      R"({{"schemaVersion":2,"config":{{"mediaType":"application/vnd.sylabs.sif.config.v1+json"}},)"
      R"("layers":[{{"mediaType":"{}","digest":"{}","size":{}}}]}})",
      kind, digest_of(k_file), k_file.size());
}

// What a registry has as a file; the content goes to a file in memory.
struct FileFixture : Fixture {
  Fd to{::memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  std::optional<Result<Descriptor>> found;
  std::optional<Result<void>> fetched;

  FileFixture() {
    replies["reg.test/v2/x/manifests/1"] = FakeServer::json(200, file_manifest());
    replies["reg.test/v2/x/blobs/" + digest_of(k_file)] = FakeServer::json(200, k_file);
    client = std::make_unique<Client>(
        loop, Options{server.folder() + "/config.json", insecure, {"amd64", {}}, server.socket()});
  }
  template <typename Answer>
  void wait_for(const std::optional<Answer>& given) {
    for (int i = 0; i < 1000 && !given; ++i) REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(given.has_value());
  }
  void find() {
    found.reset();
    operation = client->find_file("reg.test/x:1", std::chrono::steady_clock::now() + std::chrono::seconds(20),
                                  [this](Result<Descriptor> got) { found = std::move(got); });
    wait_for(found);
  }
  void fetch(const Descriptor& blob) {
    fetched.reset();
    operation = client->fetch_file("reg.test/x:1", blob, to,
                                   std::chrono::steady_clock::now() + std::chrono::seconds(20),
                                   [this](Result<void> got) { fetched = std::move(got); });
    wait_for(fetched);
  }
  std::string content() const {
    ::lseek(to.get(), 0, SEEK_SET);
    return read_all(to, "the file", 1 << 20).value();
  }
};

}  // namespace

TEST_CASE("registry: a file is fetched whole, and is what was asked for, or nothing") {
  FileFixture f;
  f.find();
  REQUIRE(f.found->ok());
  const Descriptor blob = f.found->value();
  CHECK(blob == Descriptor{digest_of(k_file), k_file.size()});
  f.fetch(blob);
  CHECK(f.fetched->ok());
  CHECK(f.content() == k_file);
  const auto fault = [&](const std::string& reply) {
    f.replies["reg.test/v2/x/blobs/" + digest_of(k_file)] = FakeServer::json(200, reply);
    f.fetch(blob);
    REQUIRE_FALSE(f.fetched->ok());
    CHECK(refused(f.fetched->error()));
    return f.fetched->error().message();
  };
  CHECK(fault("b SIF").find("the registry sent the content sha256:") != std::string::npos);
  CHECK(fault("a").find("the registry sent 1 bytes, not the 5 bytes") != std::string::npos);
  CHECK(fault(std::string(100'000, 'a')).find("the image file could not be fetched: ") == 0);
  CHECK(f.content().size() <= k_file.size());
}

TEST_CASE("registry: a file is behind a redirect, which gets no credentials") {
  FileFixture f;
  f.replies["reg.test/v2/x/blobs/" + digest_of(k_file)] = redirect("http://cdn.test/file");
  f.replies["cdn.test/file"] = FakeServer::json(200, k_file);
  f.fetch({digest_of(k_file), k_file.size()});
  CHECK(f.fetched->ok());
  CHECK(f.content() == k_file);
}

TEST_CASE("registry: a file is fetched from a registry that wants a token") {
  FileFixture f;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (where(request).starts_with("auth.test/")) return FakeServer::json(200, R"({"token":"TOKEN"})");
    if (header(request, "Authorization") != "Bearer TOKEN")
      return unauthorized(R"(Bearer realm="http://auth.test/token")");
    return f.replies.at(where(request));
  };
  f.fetch({digest_of(k_file), k_file.size()});
  if (!f.fetched->ok()) FAIL(f.fetched->error().message());
  CHECK(f.content() == k_file);
}

TEST_CASE("registry: what is no image file is refused with what it is") {
  FileFixture f;
  const auto fault = [&](const std::string& manifest) {
    f.replies["reg.test/v2/x/manifests/1"] = FakeServer::json(200, manifest);
    f.find();
    REQUIRE_FALSE(f.found->ok());
    CHECK(refused(f.found->error()));
    return f.found->error().message();
  };
  CHECK(fault(file_manifest("text/plain")) ==
        "the image file could not be fetched: it is no SIF but holds 'text/plain'");
  CHECK(fault(manifest_of(k_config)) ==
        "the image file could not be fetched: it is no SIF: it has not one layer");
  CHECK(fault("{}") == "the image file could not be fetched: it is no SIF: it has not one layer");
}

TEST_CASE("registry: a file that cannot be written here is nobody's refusal, and not fetched on") {
  // Whole, or only begun: who goes on would wait for the rest.
  for (const std::size_t sent : {k_file.size(), std::size_t{1}}) {
    FileFixture f;
    REQUIRE(::fcntl(f.to.get(), F_ADD_SEALS, F_SEAL_GROW) == 0);
    f.replies["reg.test/v2/x/blobs/" + digest_of(k_file)] = {fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", k_file.size(), k_file.substr(0, sent))};
    f.fetch({digest_of(k_file), k_file.size()});
    REQUIRE_FALSE(f.fetched->ok());
    CHECK_FALSE(refused(f.fetched->error()));
    CHECK(f.fetched->error().message().find("Operation not permitted") != std::string::npos);
  }
}

TEST_CASE("registry: a token that ends while a file comes is asked for anew, once for each attempt") {
  FileFixture f;
  int tokens = 0, good = 1;
  f.server.on_request = [&](const FakeServer::Request& request) {
    if (where(request).starts_with("auth.test/"))
      return FakeServer::json(200, fmt::format(R"({{"token":"{}"}})", ++tokens));
    if (header(request, "Authorization") != fmt::format("Bearer {}", good))
      return unauthorized(R"(Bearer realm="http://auth.test/token")");
    if (++good == 3) return FakeServer::json(200, k_file);
    return FakeServer::Reply{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na", true};
  };
  f.fetch({digest_of(k_file), k_file.size()});
  if (!f.fetched->ok()) FAIL(f.fetched->error().message());
  CHECK(f.content() == k_file);
  CHECK(tokens == 2);
  good = 0;  // no token does
  f.fetch({digest_of(k_file), k_file.size()});
  CHECK(refused(f.fetched->error()));
  CHECK(tokens == 3);
}
