#include "provisioner/backends/likely_images.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'800'000'000)};

GroupDemand wants(std::int64_t idle, std::vector<ImageDemand> images) {
  GroupDemand result;
  result.idle = idle;
  result.images = std::move(images);
  return result;
}

Pod pilot(std::string name, std::string likely = {}) {
  Pod pod;
  pod.name = std::move(name);
  pod.state = PodState::unregistered;
  pod.spares = 1;
  pod.likely = std::move(likely);
  return pod;
}

const std::map<Group, GroupDemand> k_demand{{Group(), wants(10, {{"a:1", 5}, {"b:1", 3}})}};
const std::string k_text = likely_text(k_demand.begin()->second);

}  // namespace

TEST_CASE("likely images: the annotation says the shares of all idle jobs") {
  CHECK(k_text == R"([{"image":"a:1","share":500},{"image":"b:1","share":300}])");
  CHECK(likely_text(wants(10'000, {{"a:1", 10'000}, {"b:1", 1}})) == R"([{"image":"a:1","share":1000}])");
}

TEST_CASE("likely images: only what makes a difference is told") {
  CHECK(differs("", k_text));
  CHECK_FALSE(differs(k_text, k_text));
  CHECK_FALSE(differs(k_text, likely_text(wants(10, {{"a:1", 6}, {"b:1", 2}}))));
  CHECK(differs(k_text, likely_text(wants(10, {{"a:1", 2}, {"b:1", 6}}))));
  CHECK(differs(k_text, likely_text(wants(10, {{"c:1", 10}}))));
  CHECK(differs("nonsense", k_text));
}

TEST_CASE("likely images: pilots are told that have spare containers, are at work and are not told already") {
  const auto of = [](const Pod& pod) { return to_tell({pod}, k_demand, {}, k_now).size(); };
  CHECK(of(pilot("p")) == 1);
  CHECK(of(pilot("p", k_text)) == 0);
  auto pod = pilot("p");
  pod.spares = 0;
  CHECK(of(pod) == 0);
  pod = pilot("p");
  pod.leaving = true;
  CHECK(of(pod) == 0);
  for (const auto state : {PodState::pulling, PodState::starting, PodState::unknown, PodState::failed}) {
    pod = pilot("p");
    pod.state = state;
    CHECK(of(pod) == 0);
  }
  pod = pilot("p");
  pod.group.cpus = 7;
  CHECK(of(pod) == 0);
  CHECK(to_tell({pilot("p", k_text)}, {{Group(), wants(0, {})}}, {}, k_now).empty());
}

TEST_CASE("likely images: each at most once in five minutes, and twenty in a cycle") {
  CHECK(to_tell({pilot("p")}, k_demand, {{"p", k_now - Seconds(299)}}, k_now).empty());
  CHECK(to_tell({pilot("p")}, k_demand, {{"p", k_now - Seconds(300)}}, k_now).size() == 1);
  std::vector<Pod> many;
  for (int i = 0; i < 100; ++i) many.push_back(pilot(fmt::format("p{}", i)));
  CHECK(to_tell(many, k_demand, {}, k_now).size() == 20);
}
