// Whether what manifests/nrp makes keeps NRP's public rules (docs/nrp.md).

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/demand/contract.hpp"
#include "provisioner/demand/demand.hpp"
#include "tests/provisioner/decide/inputs.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Nrp {
  Settings settings;
  Json pod_template = Json::parse(read_file(GLIDEPOD_MANIFESTS "/nrp/pilot-pod.json").value());

  Nrp() {
    Ini ini;
    REQUIRE(ini.read(read_file(GLIDEPOD_MANIFESTS "/nrp/provisioner.conf").value(), "provisioner.conf").ok());
    auto loaded = parse_settings(ini);
    REQUIRE(loaded.ok());
    CHECK(loaded->warnings.empty());
    settings = loaded->settings;
  }
  // None where the job is no demand.
  std::optional<Json> pod_of(std::int64_t cpus, std::int64_t memory_mb, std::int64_t gpus) const {
    const auto job = condor::ad_from_json(fmt::format(
        R"({{"RequestCpus": {}, "RequestMemory": {}, "RequestGPUs": {}}})", cpus, memory_mb, gpus));
    const auto counts = job->evaluate_expression(settings.htcondor.additional_requirements).to_string();
    if (counts != "true") return std::nullopt;
    return PodMaker::create(settings.kubernetes, &pod_template)
        .value()
        .make(group_of(job.value(), settings.policy).value(), "a")
        .value();
  }
};

// Calls LOOK with the pod of each size that is made, and returns their number.
template <typename Look>
int each_pod(const Nrp& nrp, Look look) {
  int made = 0;
  for (const std::int64_t cpus : {1, 2, 3, 5, 9, 12, 13, 15, 16, 17, 64})
    for (const std::int64_t memory : {1, 4096, 5000, 16385, 24577, 29000, 29001, 32768, 500'000})
      for (const std::int64_t gpus : {0, 1, 2, 3}) {
        CAPTURE(cpus);
        CAPTURE(memory);
        CAPTURE(gpus);
        const auto pod = nrp.pod_of(cpus, memory, gpus);
        CHECK(pod.has_value() == (cpus <= 15 && memory <= 29000 && gpus <= 2));
        if (!pod) continue;
        ++made;
        look(*pod, cpus, memory, gpus);
      }
  return made;
}
constexpr int k_sizes = 8 * 6 * 3;

std::string value_of(const Json& container, std::string_view name) {
  for (const auto& variable : container.at("env"))
    if (variable.at("name") == name) return variable.value("value", "");
  return "";
}

}  // namespace

TEST_CASE("nrp: the limits of each container are its requests") {
  const auto look = [](const Json& pod, auto...) {
    for (const auto* list : {"initContainers", "containers"})
      for (const auto& container : pod.at("spec").at(list))
        CHECK(container.at("resources").at("limits") == container.at("resources").at("requests"));
  };
  CHECK(each_pod(Nrp(), look) == k_sizes);
}

TEST_CASE("nrp: a pod ends by itself before 6 hours, with the time that jobs have to save their work") {
  const auto look = [](const Json& pod, auto...) {
    const auto& spec = pod.at("spec");
    CHECK(spec.at("activeDeadlineSeconds").get<int>() + spec.at("terminationGracePeriodSeconds").get<int>() <
          6 * 3600);
  };
  CHECK(each_pod(Nrp(), look) == k_sizes);
}

TEST_CASE("nrp: a pod has at most 16 CPUs, 32 GB and 2 GPUs, and no job of more is demand") {
  const auto look = [](const Json& pod, std::int64_t, std::int64_t, std::int64_t gpus) {
    const auto whole = resources_of_pod(pod).value();
    CHECK(whole.cpu_milli <= 16000);
    CHECK(whole.memory_bytes <= 32'000'000'000);
    CHECK(whole.gpus == gpus);
  };
  CHECK(each_pod(Nrp(), look) == k_sizes);
}

TEST_CASE("nrp: a job that uses what it asks for uses enough of its pod") {
  const auto look = [](const Json& pod, std::int64_t cpus, std::int64_t memory, std::int64_t gpus) {
    const auto whole = resources_of_pod(pod).value();
    CHECK(cpus * 1000 * 100 >= whole.cpu_milli * 20);
    CHECK(gpus * 100 >= whole.gpus * 40);
    // docs/nrp.md: what no setting mends is a job of less than that.
    if (memory >= 1200) CHECK((memory << 20) * 100 >= whole.memory_bytes * 20);
  };
  CHECK(each_pod(Nrp(), look) == k_sizes);
}

TEST_CASE("nrp: at most four pods have no job, however many groups and owners wait") {
  const Nrp nrp;
  Inputs inputs;
  inputs.policy.settings = nrp.settings.policy;
  inputs.policy.max_pods_per_cluster = nrp.settings.kubernetes.max_pods_per_cluster;
  inputs.policy.max_submit_pods_per_cluster = nrp.settings.kubernetes.max_submit_pods_per_cluster;
  for (const std::int64_t cpus : {1, 2, 3, 4, 6, 8})
    for (const auto* owner : {"alice", "bob", "carol"}) {
      Group group;
      group.cpus = cpus;
      inputs.demand.groups[group].idle += 500;
      inputs.demand.groups[group].owners[owner] += 500;
    }
  CHECK(inputs.decided().submissions() == 4);
  Group one;
  one.cpus = 1;
  SUBCASE("those that wait for a node count") {
    inputs.supply.groups[one].waiting = 3;
    CHECK(inputs.decided().submissions() == 1);
  }
  SUBCASE("and those that wait for a job") {
    inputs.supply.groups[one].unmatched = 4;
    CHECK(inputs.decided().submissions() == 0);
  }
  SUBCASE("those with a job do not") {
    inputs.supply.groups[one].claimed = 40;
    CHECK(inputs.decided().submissions() == 4);
  }
}

TEST_CASE("nrp: a pod without a job ends after five minutes, and takes none late in its life") {
  const auto look = [](const Json& pod, auto...) {
    const auto& pilot = pod.at("spec").at("containers").at(0);
    CHECK(pilot.at("name") == "pilot");
    CHECK(value_of(pilot, "STARTD_NOCLAIM_SHUTDOWN") == "300");
    CHECK(value_of(pilot, "GLIDEPOD_LIFETIME") == "14400");
    CHECK(value_of(pilot, "GLIDEPOD_POD_LIFETIME") == "20700");
  };
  CHECK(each_pod(Nrp(), look) == k_sizes);
}

TEST_CASE("nrp: a job that declares more time than a new pod has for it is no demand") {
  const Nrp nrp;
  const auto clauses = container_jobs("", false, nrp.settings.kubernetes.pod_lifetime);
  CHECK(clauses.back().rule == JobRule::time);
  const auto counts = [&](const std::string& declared) {
    const auto job = condor::ad_from_json("{" + declared + "}");
    return job->evaluate_expression(clauses.back().expression).to_string() == "true";
  };
  CHECK(counts(""));
  CHECK(counts(R"("AllowedJobDuration": 19800)"));
  CHECK_FALSE(counts(R"("AllowedJobDuration": 19801)"));
  CHECK_FALSE(counts(R"("AllowedExecuteDuration": 21600)"));
  CHECK(counts(R"("MaxWallTimeMins": 330)"));
  CHECK_FALSE(counts(R"("MaxWallTimeMins": 331)"));
  CHECK_FALSE(counts(R"("JOB_EXPECTED_MAX_LIFETIME": 86400)"));
}
