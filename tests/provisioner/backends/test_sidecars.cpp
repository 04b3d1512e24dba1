// Pods whose payload containers are init containers that run beside the others.
#include <doctest/doctest.h>

#include "provisioner/backends/pods.hpp"
#include "provisioner/settings/settings.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

Result<Json> made_by(std::string_view text, const Group& group, const Json* pod_template) {
  Ini ini;
  REQUIRE(ini.read(text, "f").ok());
  const auto loaded = parse_settings(ini);
  REQUIRE(loaded.ok());
  const auto maker = TRY(PodMaker::create(loaded->settings.kubernetes, pod_template));
  return maker.make(group, "prp-wn-1");
}

Json whole_pod() {
  return Json::parse(R"({"apiVersion": "v1", "kind": "Pod", "spec": {"restartPolicy": "OnFailure",
    "initContainers": [{"name": "install", "image": "pilot:1"}],
    "containers": [{"name": "pilot", "image": "pilot:1", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}},
      {"name": "payload-0", "image": "pilot:1"}, {"name": "payload-1", "image": "pilot:1"},
      {"name": "log", "image": "other:1"}]}})");
}

}  // namespace

TEST_CASE("pods: payload containers may be sidecars, with all that they have as containers") {
  const auto from_template = whole_pod();
  const Group group{.cpus = 3, .memory_mb = 9001};
  const auto made = made_by("[k8s]\nlayout=sidecars\nwarm=off\n", group, &from_template);
  const auto other = made_by("[k8s]\nlayout=containers\nwarm=off\n", group, &from_template);
  REQUIRE(made.ok());
  const auto& spec = made->at("spec");
  CHECK(spec["containers"].size() == 2);  // the pilot, and what is no payload container
  const auto& first = spec["initContainers"];
  REQUIRE(first.size() == 3);
  CHECK(first[0]["name"] == "install");
  CHECK_FALSE(first[0].contains("restartPolicy"));
  for (const std::size_t i : {0U, 1U}) {
    Json expected = other->at("spec")["containers"][i + 1];
    expected["restartPolicy"] = "Always";
    CHECK(first[i + 1] == expected);
  }
  CHECK(spec["containers"][0] == other->at("spec")["containers"][0]);
  CHECK(spec["restartPolicy"] == from_template["spec"]["restartPolicy"]);
  const auto sum = resources_of_pod(*made).value(), same = resources_of_pod(*other).value();
  CHECK(sum.cpu_milli == same.cpu_milli);
  CHECK(sum.memory_bytes == same.memory_bytes);
  CHECK(sum.limit_memory_bytes == same.limit_memory_bytes);
  CHECK(sum.disk_bytes == same.disk_bytes);
  CHECK(made->at("metadata")["annotations"]["glidepod.io/made-as"] !=
        other->at("metadata")["annotations"]["glidepod.io/made-as"]);
  CHECK(made_by("[k8s]\nlayout=sidecars\nborn_ready=yes\n", group, &from_template).error().message() ==
        "born_ready and layout=sidecars exclude each other");
  CHECK(made_by("[k8s]\nlayout=sidecars\n", group, nullptr)->at("spec") ==
        made_by("[k8s]\n", group, nullptr)->at("spec"));
}
