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
