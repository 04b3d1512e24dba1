// What the settings that are shipped (manifests/provisioner) make of jobs.

#include <fmt/format.h>

#include <regex>

#include "lib/base/file.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/demand/demand.hpp"
#include "provisioner/settings/settings.hpp"
#include "tests/provisioner/decide/inputs.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Shipped : Inputs {
  Shipped() {
    Ini ini;
    REQUIRE(ini.read(read_file(GLIDEPOD_SHIPPED_SETTINGS).value(), "provisioner.conf").ok());
    const auto loaded = parse_settings(ini);
    REQUIRE(loaded.ok());
    policy.settings = loaded->settings.policy;
    policy.max_pods_per_cluster = loaded->settings.kubernetes.max_pods_per_cluster;
    policy.max_submit_pods_per_cluster = loaded->settings.kubernetes.max_submit_pods_per_cluster;
  }
  void job(const std::string& owner, std::int64_t memory_mb, std::int64_t disk_kb, std::int64_t cpus = 1,
           std::int64_t gpus = 0) {
    const auto ad = condor::ad_from_json(fmt::format(
        R"({{"Owner": "{}", "RequestCpus": {}, "RequestMemory": {}, "RequestDisk": {}, "RequestGPUs": {}}})",
        owner, cpus, memory_mb, disk_kb, gpus));
    auto& jobs = demand.groups[group_of(ad.value(), policy.settings).value()];
    ++jobs.idle;
    ++jobs.owners[owner];
  }
  std::int64_t pods() const {
    std::int64_t sum = 0;
    for (const auto& decision : decided().decisions) sum += decision.submit;
    return sum;
  }
};

}  // namespace

TEST_CASE("shipped: images are pulled beside the pods, and each switch that is commented is one") {
  auto text = read_file(GLIDEPOD_SHIPPED_SETTINGS).value();
  const auto load = [&] {
    Ini ini;
    REQUIRE(ini.read(text, "provisioner.conf").ok());
    auto loaded = parse_settings(ini);
    REQUIRE(loaded.ok());
    CHECK(loaded->warnings.empty());
    return loaded->settings;
  };
  CHECK(load().kubernetes.pullers);
  CHECK(!load().kubernetes.born_ready);
  CHECK(text.find("\nwarm=auto\n") != std::string::npos);
  CHECK_FALSE(load().kubernetes.warm);
  text = std::regex_replace(text, std::regex("\n#([a-z_]+=)"), "\n$1");
  const auto all = load();
  CHECK(all.kubernetes.born_ready);
  CHECK(all.kubernetes.envs.size() == 2);
  CHECK(!all.kubernetes.gpus_on_nodes);
  CHECK(all.htcondor.demand == DemandBy::offline);
}

// By its own size each would be a group, and get two pods at once.
TEST_CASE("shipped: 500 jobs with 500 values of RequestDisk are three sizes of pods") {
  Shipped scene;
  for (int i = 0; i < 500; ++i) scene.job("alice", 2000, 1'000'000 + 50'000 * i);
  CHECK(scene.demand.groups.size() == 3);
  const auto alices = scene.pods();
  CHECK(alices == 60);
  SUBCASE("another owner's few jobs share them, or have their own") {
    for (int i = 0; i < 20; ++i) scene.job("bob", 2000, 40'000'000);
    CHECK(scene.demand.groups.size() == 4);
    CHECK(scene.pods() == alices + 6);
  }
}

TEST_CASE("shipped: 500 jobs with 500 values of RequestMemory are three sizes of pods") {
  Shipped scene;
  for (int i = 0; i < 500; ++i) scene.job("alice", 100 + 30 * i, 1'000'000);
  CHECK(scene.demand.groups.size() == 3);
  CHECK(scene.pods() == 60);
}

TEST_CASE("shipped: 256 jobs with 256 values of RequestCpus are 13 sizes of pods") {
  Shipped scene;
  for (int i = 1; i <= 256; ++i) scene.job("alice", 2000, 1'000'000, i);
  // 1, 2, 4, 8, 16, 32, and from there multiples of 32.
  CHECK(scene.demand.groups.size() == 13);
}

// GPUs are no size that could be rounded up.
TEST_CASE("shipped: who has many sizes of jobs does not get everybody's pods") {
  Shipped scene;
  for (int gpus = 1; gpus <= 20; ++gpus)
    for (int i = 0; i < 100; ++i) scene.job("alice", 2000, 1'000'000, 1, gpus);
  CHECK(scene.pods() == 200);  // by the law 400
  for (int i = 0; i < 100; ++i) {
    scene.job("bob", 2000, 1'000'000, 1);
    scene.job("bob", 5000, 1'000'000, 1);
    scene.job("bob", 10000, 1'000'000, 1);
    scene.job("bob", 2000, 10'000'000, 1);
    scene.job("bob", 5000, 10'000'000, 1);
  }
  std::map<bool, std::int64_t> by_gpus;
  for (const auto& decision : scene.decided().decisions) by_gpus[decision.group.gpus > 0] += decision.submit;
  CHECK(by_gpus[true] == 100);
  CHECK(by_gpus[false] == 100);
}
