#include "provisioner/demand/images.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/condor/ad_stream.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

std::string image(std::string_view json) {
  return image_of(condor::ad_from_json(json).value());
}

std::int64_t count_of(const std::vector<ImageDemand>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &ImageDemand::image);
  return found == all.end() ? 0 : found->idle;
}

}  // namespace

TEST_CASE("images: what a job's ad says by a plain string, by its full name") {
  CHECK(image(R"({"ContainerImage": "docker://alpine:3.19"})") == "docker.io/library/alpine:3.19");
  CHECK(image(R"({"ContainerImage": "docker://reg.example/a/b"})") == "reg.example/a/b:latest");
  // As START has it.
  CHECK(image(R"({"SingularityImage": "docker://b", "ContainerImage": "docker://a"})") ==
        "docker.io/library/b:latest");
  CHECK(image(R"({"SingularityImage": 7, "ContainerImage": "docker://a"})") == "docker.io/library/a:latest");
  CHECK(image(R"({})").empty());
}

TEST_CASE("images: an expression, a path and what is no name are not counted") {
  CHECK(image(R"({"ContainerImage": "\/Expr(strcat(\"docker:\/\/\", \"a\"))\/"})").empty());
  CHECK(image(R"({"SingularityImage": "\/Expr(ifThenElse(true, \"docker:\/\/b\", 1))\/",
                  "ContainerImage": "docker://a"})")
            .empty());
  CHECK(image(R"({"ContainerImage": "/cvmfs/singularity.opensciencegrid.org/a"})").empty());
  CHECK(image(R"({"ContainerImage": "docker://../../etc"})").empty());
  CHECK(image(R"({"ContainerImage": "docker://a b"})").empty());
  CHECK(image(R"({"ContainerImage": "docker://a\nb"})").empty());
  CHECK(image(R"({"ContainerImage": "docker://)" + std::string(600, 'a') + "\"}").empty());
}

TEST_CASE("images: the most wanted first, equal counts by name, at most 16") {
  ImageTally tally;
  for (int i = 0; i < 10; ++i) tally.add("alice", fmt::format("a{}", i), 5);
  for (int i = 0; i < 10; ++i) tally.add("bob", fmt::format("b{}", i), 5);
  tally.add("bob", "z", 3);
  tally.add("alice", "z", 4);
  const auto all = tally.most_wanted();
  REQUIRE(all.size() == k_most_images);
  CHECK(all[0] == ImageDemand{"z", 7});
  CHECK(all[1] == ImageDemand{"a0", 5});
  CHECK(all.back() == ImageDemand{"b4", 5});
}

TEST_CASE("images: two tallies add up") {
  ImageTally one, other;
  one.add("alice", "a", 5);
  other.add("alice", "a", 2);
  other.add("bob", "b", 6);
  one.add(other);
  CHECK(one.most_wanted() == std::vector<ImageDemand>{{"a", 7}, {"b", 6}});
}

TEST_CASE("images: whoever asks for a hundred thousand spoils only their own count") {
  ImageTally tally;
  tally.add("alice", "a", 3);
  for (int i = 0; i < 100'000; ++i) {
    tally.add("mallory", fmt::format("m{}", i), 1);
    if (i % 5 == 0) tally.add("mallory", "often", 1);
  }
  const auto all = tally.most_wanted();
  CHECK(all.size() <= k_most_images);
  CHECK(count_of(all, "a") == 3);
  // Nothing counts more than it is wanted, and what is wanted by more than one in 17 is there.
  CHECK(count_of(all, "often") > 0);
  CHECK(count_of(all, "often") <= 20'000);
  for (const auto& [name, idle] : all)
    if (name.starts_with("m")) CHECK(idle <= 1);
}
