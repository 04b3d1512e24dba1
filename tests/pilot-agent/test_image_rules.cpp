#include "pilot-agent/image_rules.hpp"

#include <doctest/doctest.h>

#include "pilot-agent/settings.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("image rules: what an image of a command line is in a pod") {
  const auto rules = Settings().rules().value();
  const std::string digest = "@sha256:" + std::string(64, 'a');
  struct Row {
    std::string image, expected;
  };
  for (const Row& row : {
           Row{"docker://alpine:3.19", "docker.io/library/alpine:3.19"},
           Row{"alpine", "docker.io/library/alpine:latest"},
           Row{"docker://org/name", "docker.io/org/name:latest"},
           Row{"docker://ghcr.io/org/name:1.2", "ghcr.io/org/name:1.2"},
           Row{"docker://localhost:5000/a/b:c", "localhost:5000/a/b:c"},
           Row{"docker://alpine:3.19" + digest, "docker.io/library/alpine" + digest},
           Row{"/cvmfs/singularity.opensciencegrid.org/org/name:tag", "docker.io/org/name:tag"},
           Row{"/cvmfs/singularity.opensciencegrid.org/org/name:tag/", "docker.io/org/name:tag"},
           Row{"/cvmfs/unpacked.cern.ch/registry.hub.docker.com/org/name:tag", "docker.io/org/name:tag"},
           Row{"/cvmfs/unpacked.cern.ch/gitlab-registry.cern.ch/group/name:tag",
               "gitlab-registry.cern.ch/group/name:tag"},
       }) {
    CAPTURE(row.image);
    const auto image = pod_image(row.image, rules);
    REQUIRE(image.ok());
    CHECK(image.value() == row.expected);
  }
}

TEST_CASE("image rules: what cannot be run says what can") {
  const auto rules = Settings().rules().value();
  for (const char* image : {"/images/a.sif", "a.sif", "./folder", "/cvmfs/other/x", "http://x/a",
                            "https://x/a.sif", "oras://x/y", "library://x/y", "shub://x"}) {
    CAPTURE(image);
    const auto refused = pod_image(image, rules);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message().find(image) != std::string::npos);
    CHECK(refused.error().message().find("docker://NAME") != std::string::npos);
  }
  for (const char* image : {"", "docker://", "docker://UPPER", "docker://a:b:c", "docker://-x"})
    CHECK_FALSE(pod_image(image, rules).ok());
}

TEST_CASE("image rules: their form is checked") {
  CHECK(ImageRule::parse("/a/{path} -> r.example/b/{path}").value().replacement == "r.example/b/");
  for (const char* text : {"", "/a/{path}", "a/{path} -> b/{path}", "/a -> b", "/a/{path} -> b"})
    CHECK_FALSE(ImageRule::parse(text).ok());
}
