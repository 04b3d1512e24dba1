// Whether what manifests/nrp makes keeps NRP's public rules (docs/nrp.md).

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/demand/demand.hpp"

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

}  // namespace

TEST_CASE("nrp: whatever a job asks for, its pod keeps the rules, or it is no demand") {
  const Nrp nrp;
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
        const auto whole = resources_of_pod(*pod).value();
        CHECK(whole.cpu_milli <= 16000);
        CHECK(whole.memory_bytes <= 32'000'000'000);
        CHECK(whole.gpus == gpus);
        const auto& spec = pod->at("spec");
        for (const auto* list : {"initContainers", "containers"})
          for (const auto& container : spec.at(list))
            CHECK(container.at("resources").at("limits") == container.at("resources").at("requests"));
        // With the time that jobs have to save their work.
        CHECK(spec.at("activeDeadlineSeconds").get<int>() +
                  spec.at("terminationGracePeriodSeconds").get<int>() <
              6 * 3600);
      }
  CHECK(made == 8 * 6 * 3);
}
