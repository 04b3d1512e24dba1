#include "lib/kube/image_reference.hpp"

#include <doctest/doctest.h>

using glidepod::kube::ImageReference;

namespace {

std::string full_name(const char* text) {
  const auto reference = ImageReference::parse(text);
  return reference ? reference->full_name() : reference.error().message();
}

}  // namespace

// The right side is what containerd 1.6 and CRI-O show in a pod's status for the left one
// (distribution/reference).
TEST_CASE("image_reference: full names are those that container runtimes show") {
  static constexpr const char* table[][2] = {
      {"alpine", "docker.io/library/alpine:latest"},
      {"alpine:3.19", "docker.io/library/alpine:3.19"},
      {"org/name", "docker.io/org/name:latest"},
      {"docker.io/alpine:3.19", "docker.io/library/alpine:3.19"},
      {"docker.io/library/alpine:3.19", "docker.io/library/alpine:3.19"},
      {"docker.io/org/name:1", "docker.io/org/name:1"},
      {"index.docker.io/alpine:3.19", "docker.io/library/alpine:3.19"},
      {"index.docker.io/library/alpine:3.19", "docker.io/library/alpine:3.19"},
      {"index.docker.io/org/name:1", "docker.io/org/name:1"},
      {"registry-1.docker.io/alpine:1", "registry-1.docker.io/alpine:1"},
      {"localhost/alpine:1", "localhost/alpine:1"},
      {"registry.example:5000/alpine", "registry.example:5000/alpine:latest"},
      {"0a/z9", "docker.io/0a/z9:latest"},
  };
  for (const auto& [written, shown] : table) CHECK(full_name(written) == shown);
}

TEST_CASE("image_reference: with a digest the tag is left out, and the repository is full") {
  const std::string digest = "sha256:" + std::string(64, 'a');
  CHECK(full_name(("docker.io/alpine:1@" + digest).c_str()) == "docker.io/library/alpine@" + digest);
  CHECK(full_name(("index.docker.io/alpine@" + digest).c_str()) == "docker.io/library/alpine@" + digest);
  CHECK(ImageReference::parse("index.docker.io/alpine").value().full_repository() ==
        "docker.io/library/alpine");
}

TEST_CASE("image_reference: the name as written is kept beside it") {
  CHECK(ImageReference::parse("docker.io/alpine").value().repository == "docker.io/alpine");
  CHECK(ImageReference::parse("docker.io/alpine").value().local_name() == "docker.io/alpine:latest");
}

// The grammar of distribution/reference, as the kubelet reads names.
TEST_CASE("image_reference: what is a name of an image, and what is none") {
  const std::string digest(64, '0');
  for (const std::string& good : {std::string("a"),
                                  std::string("z0-9"),
                                  std::string("0a/z9"),
                                  std::string("a.b"),
                                  std::string("a_b"),
                                  std::string("a__b"),
                                  std::string("a---b"),
                                  std::string("a:A"),
                                  std::string("a:Z.9-_"),
                                  std::string("a:_0"),
                                  std::string("a:z"),
                                  std::string("localhost/a"),
                                  std::string("Host/a"),
                                  std::string("AZ/a"),
                                  std::string("host.x:0/a"),
                                  std::string("host.x:9/a:1"),
                                  std::string("[::1]/a"),
                                  std::string("[::1]:5000/a"),
                                  std::string("host:5000/a/b/c"),
                                  std::string("a-b.x/a"),
                                  std::string("a_b.c"),
                                  std::string("a_b/c"),
                                  std::string("A/b"),
                                  std::string("Z/b"),
                                  "a:" + std::string(128, 't'),
                                  std::string(255, 'a'),
                                  "host.x/" + std::string(255, 'a'),
                                  "a@sha256:" + digest,
                                  "a@sha256:" + std::string(62, '9') + "af",
                                  "a:1@sha256:" + digest}) {
    CAPTURE(good);
    CHECK(ImageReference::parse(good).ok());
  }
  for (const std::string& bad : {std::string(""),
                                 std::string(":1"),
                                 std::string("a:"),
                                 std::string("a:.x"),
                                 std::string("a:-x"),
                                 std::string("a:x y"),
                                 std::string("a:x/"),
                                 std::string("A"),
                                 std::string("a/B"),
                                 std::string("a b"),
                                 std::string("a..b"),
                                 std::string("a___b"),
                                 std::string("a._b"),
                                 std::string("a+b"),
                                 std::string("-a"),
                                 std::string("a-"),
                                 std::string("a/-b"),
                                 std::string("/a"),
                                 std::string("a/"),
                                 std::string("a//b"),
                                 std::string("{"),
                                 std::string("`"),
                                 std::string("a:@"),
                                 std::string("a:["),
                                 std::string("a:{"),
                                 std::string("a:`"),
                                 std::string("host.x/"),
                                 std::string("host.x:/a"),
                                 std::string("host.x:5x/a"),
                                 std::string("host.x:5+/a"),
                                 std::string("host.x:/:/a"),
                                 std::string(":5000/a"),
                                 std::string("-host.x/a"),
                                 std::string("host.x-/a"),
                                 std::string("ho_st.x/a"),
                                 std::string("ho+st.x/a"),
                                 std::string("[::1/a"),
                                 std::string("[::1]xy/a"),
                                 std::string("[::1]:/a"),
                                 "a:" + std::string(129, 't'),
                                 std::string(256, 'a'),
                                 "host.x/" + std::string(256, 'a'),
                                 std::string("a@sha256:0"),
                                 "a@sha256:" + digest + "0",
                                 "a@sha512:" + digest,
                                 "a@sha256:" + std::string(63, '0') + "g",
                                 "a@sha256:" + std::string(63, '0') + "A",
                                 "a@sha256:" + std::string(63, '0') + "/",
                                 "a@sha256:" + std::string(63, '0') + ":",
                                 "@sha256:" + digest,
                                 "a@" + digest}) {
    CAPTURE(bad);
    CHECK_FALSE(ImageReference::parse(bad).ok());
  }
}

TEST_CASE("image_reference: a colon belongs to the tag only behind the last slash") {
  CHECK(ImageReference::parse("host:5000/a").value().tag == "");
  CHECK(ImageReference::parse("host:5000/a:2").value().tag == "2");
  CHECK(ImageReference::parse("host:5000/a").value().local_name() == "host:5000/a:latest");
  CHECK(ImageReference::parse("host:5000").value().local_name() == "host:5000");
  const std::string digest = "@sha256:" + std::string(64, 'b');
  CHECK(ImageReference::parse("a:1" + digest).value().local_name() == "a" + digest);
}

TEST_CASE("image_reference: whether admission has left a tag as it was written") {
  using glidepod::kube::keeps_tag;
  CHECK(keeps_tag("a:1", "mirror.example/a:1"));
  CHECK(keeps_tag("a", "mirror.example/a"));
  CHECK_FALSE(keeps_tag("a:1", "a:2"));
  CHECK_FALSE(keeps_tag("a:1", "a b"));
  CHECK_FALSE(keeps_tag("a b", "a:1"));
  CHECK_FALSE(keeps_tag("a b", "a b"));
}

TEST_CASE("image_reference: the full name of what is none is what was written") {
  CHECK(glidepod::kube::full_name_of("a") == "docker.io/library/a:latest");
  CHECK(glidepod::kube::full_name_of("a b") == "a b");
}

TEST_CASE("image_reference: a node's id of an image, and its beginning") {
  using glidepod::kube::is_by_id;
  using glidepod::kube::is_digest;
  const std::string id = "sha256:" + std::string(64, 'f');
  CHECK(is_digest(id));
  CHECK_FALSE(is_digest(id.substr(0, 70)));
  CHECK_FALSE(is_digest(id + "f"));
  CHECK_FALSE(is_digest("docker://" + id));
  CHECK_FALSE(is_digest("sha256:" + std::string(64, 'g')));
  CHECK(is_by_id(id));
  CHECK(is_by_id(id.substr(0, 23)));
  CHECK_FALSE(is_by_id(id.substr(0, 22)));
  CHECK_FALSE(is_by_id(id + "f"));
  CHECK_FALSE(is_by_id("sha256:" + std::string(64, 'g')));
  CHECK_FALSE(is_by_id("sha512:" + std::string(64, 'f')));
  CHECK_FALSE(is_by_id("docker.io/library/a:1"));
}
