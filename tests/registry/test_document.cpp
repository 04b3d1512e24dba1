#include "lib/registry/document.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace glidepod;
using namespace glidepod::registry;

namespace {

const std::string k_digest = "sha256:" + std::string(64, 'a');
const std::string k_other = "sha256:" + std::string(64, 'b');
const Platform k_amd64{"amd64", {}};
const Platform k_arm64{"arm64", "v8"};

std::string entry(const std::string& digest, const std::string& platform) {
  return fmt::format(R"({{"digest":"{}","size":7,"platform":{}}})", digest, platform);
}
std::string index(const std::string& entries) {
  return R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)" +
         entries + "]}";
}
std::string image(const std::string& config) {
  return R"({"schemaVersion":2,"layers":[{"digest":"x"}],"config":)" + config + "}";
}
std::string why(const std::string& manifest, const Platform& platform = k_amd64) {
  const auto parsed = parse_manifest(manifest, platform);
  REQUIRE_FALSE(parsed.ok());
  return parsed.error().message();
}
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("document: entry point, command and arguments") {
  struct Row {
    ImageCommand image;
    Words arguments, line;
  };
  for (const Row& row : {
           Row{{{"/e", "x"}, {"c"}}, {}, {"/e", "x", "c"}},
           Row{{{"/e", "x"}, {"c"}}, {"a", "b"}, {"/e", "x", "a", "b"}},
           Row{{{"/e"}, {}}, {"a"}, {"/e", "a"}},
           Row{{{}, {"/c", "x"}}, {}, {"/c", "x"}},
           Row{{{}, {"/c", "x"}}, {"/a", "$b"}, {"/a", "$b"}},
           Row{{}, {"/a"}, {"/a"}},
           Row{{}, {}, {}},
       })
    CHECK(command_line(row.image, row.arguments) == row.line);
}

TEST_CASE("document: the manifest of an image") {
  for (const char* type :
       {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}) {
    const auto manifest = parse_manifest(
        image(fmt::format(R"({{"mediaType":"{}","digest":"{}","size":12}})", type, k_digest)), k_amd64);
    REQUIRE(manifest.ok());
    CHECK_FALSE(manifest->index);
    CHECK(manifest->next == Descriptor{k_digest, 12});
  }
  CHECK(why(image(R"({"mediaType":"application/vnd.cncf.helm.config.v1+json"})")) ==
        "it is no container image but holds 'application/vnd.cncf.helm.config.v1+json'");
}

TEST_CASE("document: the node's platform in an index") {
  const std::string all = index(entry(k_other, R"({"os":"windows","architecture":"amd64"})") + "," +
                                entry(k_digest, R"({"os":"linux","architecture":"amd64"})") + "," +
                                entry(k_other, R"({"os":"linux","architecture":"arm","variant":"v7"})") +
                                "," + entry(k_other, R"({"os":"unknown","architecture":"unknown"})"));
  const auto chosen = parse_manifest(all, k_amd64);
  REQUIRE(chosen.ok());
  CHECK(chosen->index);
  CHECK(chosen->next == Descriptor{k_digest, 7});
  CHECK(why(all, k_arm64) ==
        "it has no linux/arm64/v8 variant; what it has: windows/amd64, linux/amd64, linux/arm/v7");
  CHECK(why(index("")) == "it has no linux/amd64 variant; what it has: none");

  // The node's own variant, then none, then any; and the first of equals.
  const std::string v8 = entry(k_digest, R"({"os":"linux","architecture":"arm64","variant":"v8"})");
  const std::string plain = entry(k_other, R"({"os":"linux","architecture":"arm64"})");
  CHECK(parse_manifest(index(plain + "," + v8), k_arm64)->next.digest == k_digest);
  CHECK(parse_manifest(index(v8 + "," + plain), {"arm64", {}})->next.digest == k_other);
  CHECK(parse_manifest(index(v8), {"arm64", {}})->next.digest == k_digest);
  const std::string again = entry(k_other, R"({"os":"linux","architecture":"arm64","variant":"v8"})");
  CHECK(parse_manifest(index(v8 + "," + again), k_arm64)->next.digest == k_digest);
  CHECK(parse_manifest(index(fmt::format(R"({{"digest":"{}","size":7}})", k_digest)), k_amd64)->next.digest ==
        k_digest);

  std::string many;
  for (int i = 0; i < 500; ++i)
    many +=
        (many.empty() ? "" : ",") + entry(k_other, fmt::format(R"({{"os":"os{}","architecture":"x"}})", i));
  CHECK(why(index(many)).size() < 400);
}

TEST_CASE("document: hostile manifests") {
  const std::string config = R"({"mediaType":"application/vnd.oci.image.config.v1+json",)";
  const auto sized = [&config](const char* size) {
    return image(fmt::format(R"({}"digest":"{}","size":{}}})", config, k_digest, size));
  };
  struct Row {
    std::string manifest;
    const char* why;
  };
  for (const Row& row : {
           Row{"", "malformed"},
           Row{"[]", "no JSON object"},
           Row{"null", "no JSON object"},
           Row{"{}", "neither"},
           Row{R"({"schemaVersion":1,"fsLayers":[]})", "old version"},
           Row{R"({"manifests":[],"config":{}})", "neither"},
           Row{R"({"manifests":{}})", "no list"},
           Row{R"({"manifests":[7,"x",null]})", "no linux/amd64"},
           Row{R"({"config":[]})", "no container image"},
           Row{image(config + R"("digest":"sha512:aa","size":1})"), "not of SHA-256"},
           Row{image(config + R"("digest":"../../x","size":1})"), "not of SHA-256"},
           Row{sized("-1"), "no size"},
           Row{sized("1e3"), "no size"},
           Row{sized("18446744073709551615"), "no size"},
           Row{sized("4194305"), "larger than"},
           Row{std::string(1'000'000, '['), "has too many parts"},
           Row{R"({"manifests":)" + std::string(1'000'000, '['), "has too many parts"},
       }) {
    CAPTURE(row.manifest.substr(0, 100));
    CHECK(why(row.manifest).find(row.why) != std::string::npos);
  }
  // As large as an answer may be, and of the smallest parts.
  std::string parts = R"({"manifests":[0)";
  while (parts.size() < 4'000'000) parts += ",{}";
  CHECK(why(parts + "]}").find("has too many parts") != std::string::npos);
  std::string ignored = R"({"layers":[0)";
  while (ignored.size() < 4'000'000) ignored += ",[]";
  CHECK_FALSE(parse_manifest(ignored + "]}", k_amd64).ok());
}

TEST_CASE("document: an image's configuration") {
  CHECK(parse_config(R"({"architecture":"amd64","config":{"Entrypoint":["/e","x"],"Cmd":["c"],"Env":["A=B"]},
                         "rootfs":{"diff_ids":["x"]},"history":[{}]})")
            .value() == ImageCommand{{"/e", "x"}, {"c"}});
  for (const char* none :
       {"{}", R"({"config":null})", R"({"config":{}})", R"({"config":{"Entrypoint":null,"Cmd":null}})",
        R"({"config":{"Entrypoint":[],"Cmd":[]}})"})
    CHECK(parse_config(none).value() == ImageCommand{});
  for (const char* bad :
       {"", "[]", R"({"config":7})", R"({"config":{"Entrypoint":"/e"}})", R"({"config":{"Cmd":[7]}})",
        R"({"config":{"Cmd":["a\u0000b"]}})", R"({"config":{"Cmd":{"a":1}}})"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_config(bad).ok());
  }
  std::string words = R"(["x")";
  for (int i = 0; i < 1000; ++i) words += R"(,"x")";
  CHECK_FALSE(parse_config(R"({"config":{"Cmd":)" + words + "]}}").ok());
  CHECK_FALSE(parse_config(R"({"config":{"Cmd":[")" + std::string(33'000, 'x') + R"("]}})").ok());
}

TEST_CASE("document: a registry's own words") {
  CHECK(
      error_words(
          R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{"Tag":"9"}}]})") ==
      "MANIFEST_UNKNOWN: manifest unknown");
  CHECK(error_words(R"({"details":"incorrect username or password"})") == "incorrect username or password");
  CHECK(error_words("not\x1b[31m JSON\nmore") == "not [31m JSON");
  CHECK(error_words(R"({"errors":[]})") == "");
  CHECK(error_words(R"({"errors":[{"message":")" + std::string(10'000, 'x') + R"("}]})").size() == 300);
}

TEST_CASE("document: digests") {
  // The SHA-256 of nothing and of "abc", as FIPS 180-2 has them.
  CHECK(digest_of("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest_of("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(verify("abc", {digest_of("abc"), 3}).ok());
  CHECK(verify("abc", {digest_of("abc"), 0}).ok());
  CHECK_FALSE(verify("abc", {digest_of("abc"), 4}).ok());
  CHECK_FALSE(verify("abd", {digest_of("abc"), 3}).ok());
}
