#include "provisioner/backends/born_ready.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

using namespace glidepod;
using namespace glidepod::provisioner;
using Json = nlohmann::json;

namespace {

GroupDemand demand(std::int64_t idle, std::vector<ImageDemand> images) {
  GroupDemand result;
  result.idle = idle;
  result.images = std::move(images);
  return result;
}

Json pod(int payloads) {
  Json result = {{"metadata", {{"name", "wn-1"}}},
                 {"spec", {{"containers", {{{"name", "pilot"}, {"image", "pilot:1"}}}}}}};
  for (int i = 0; i < payloads; ++i)
    result["spec"]["containers"].push_back({{"name", fmt::format("payload-{}", i)}, {"image", "pilot:1"}});
  result["spec"]["containers"].push_back({{"name", "logs"}, {"image", "logs:1"}});
  return result;
}

std::string images_in(const Json& pod) {
  std::string result;
  for (const auto& container : pod["spec"]["containers"])
    result += (result.empty() ? "" : " ") + container["image"].get<std::string>();
  return result;
}

bool any(const std::string&) {
  return true;
}
bool none(const std::string&) {
  return false;
}

// How often each image is chosen over so many pods.
std::map<std::string, int> shares(const GroupDemand& wanted, int pods, std::size_t containers,
                                  const MayBe& may_be = any) {
  std::map<std::string, int> result;
  for (int i = 0; i < pods; ++i)
    for (const auto& image : births(wanted, may_be, containers, fmt::format("wn-0123456789abcdef-{}", i)))
      ++result[image];
  return result;
}

}  // namespace

TEST_CASE("born_ready: payload containers get what jobs want, but the first, and no other container does") {
  auto made = pod(3);
  CHECK(give_births(made, demand(10, {{"a:1", 10}}), any));
  CHECK(images_in(made) == "pilot:1 pilot:1 a:1 a:1 logs:1");
}

TEST_CASE("born_ready: a pod with one payload container, or of another kind, stays as it is") {
  for (auto made : {pod(0), pod(1)}) {
    const auto before = made;
    CHECK_FALSE(give_births(made, demand(10, {{"a:1", 10}}), any));
    CHECK(made == before);
  }
  // Where the template says an image of its own, it is meant.
  auto made = pod(2);
  made["spec"]["containers"][2]["image"] = "own:1";
  CHECK_FALSE(give_births(made, demand(10, {{"a:1", 10}}), any));
  made = pod(2);
  CHECK_FALSE(give_births(made, demand(10, {}), any));
  CHECK_FALSE(give_births(made, demand(10, {{"a:1", 10}}), none));
  CHECK(images_in(made) == "pilot:1 pilot:1 pilot:1 logs:1");
}

TEST_CASE("born_ready: over many pods each image has its share, and what is not known has one") {
  const auto got = shares(demand(1000, {{"a", 500}, {"b", 250}}), 2000, 1);
  CHECK(got.at("a") == doctest::Approx(1000).epsilon(0.1));
  CHECK(got.at("b") == doctest::Approx(500).epsilon(0.15));
  CHECK(got.at("") == doctest::Approx(500).epsilon(0.15));
}

TEST_CASE("born_ready: within a pod the shares are as even as can be") {
  for (int i = 0; i < 20; ++i) {
    const auto got = shares(demand(100, {{"a", 50}, {"b", 25}, {"c", 25}}), 1, 4);
    CHECK(got.at("a") == 2);
    CHECK(got.at("b") == 1);
    CHECK(got.at("c") == 1);
  }
}

TEST_CASE("born_ready: the same name gives the same pod") {
  const auto wanted = demand(100, {{"a", 50}, {"b", 50}});
  CHECK(births(wanted, any, 3, "wn-7") == births(wanted, any, 3, "wn-7"));
}

TEST_CASE("born_ready: images come only from where they may") {
  const List places{"docker.io/library", "reg.example:5000/team"};
  CHECK(is_from("docker.io/library/a:1", places));
  CHECK(is_from("reg.example:5000/team@sha256:1", places));
  CHECK(is_from("reg.example:5000/team:1", places));
  CHECK_FALSE(is_from("docker.io/libraryx/a:1", places));
  CHECK_FALSE(is_from("reg.example:5000/teams/a:1", places));
  CHECK_FALSE(is_from("docker.io/other/a:1", places));
  CHECK(is_from("docker.io/other/a:1", {}));
  // Their share stays with the pilot's own image.
  const auto got = shares(demand(100, {{"docker.io/other/x:1", 50}, {"docker.io/library/a:1", 50}}), 100, 2,
                          [&](const auto& image) { return is_from(image, places); });
  CHECK(got.at("docker.io/library/a:1") == 100);
  CHECK(got.at("") == 100);
}
