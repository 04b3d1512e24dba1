#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "provisioner/backends/pods.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

Json shipped(const std::string& folder) {
  return Json::parse(read_file(std::string(GLIDEPOD_MANIFESTS "/") + folder + "/pilot-pod.json").value());
}

// As the shipped settings have it.
KubernetesSettings by_the_pod() {
  KubernetesSettings settings;
  settings.pilot_attributes.reset();
  return settings;
}

PilotAttributes of(const Json& pod, const KubernetesSettings& settings = by_the_pod()) {
  return PodMaker::create(settings, &pod).value().pilot_attributes();
}

// The shipped pod, with more in its pilot's environment.
PilotAttributes with(const Dict& variables) {
  auto settings = by_the_pod();
  settings.envs = variables;
  return of(shipped("provisioner"), settings);
}

PilotAttributes mounted_at(const char* path) {
  auto pod = shipped("provisioner");
  for (auto& container : pod["spec"]["containers"])
    if (container["name"] == "pilot")
      container["volumeMounts"].push_back({{"name", "shared"}, {"mountPath", path}});
  return of(pod);
}

const PilotAttributes k_none{.known = true, .more = {}};
const PilotAttributes k_unknown{};

}  // namespace

TEST_CASE(
    "pilot attributes: of the shipped pods nothing is hidden, but where another image's HTCondor runs") {
  CHECK(of(shipped("provisioner")) == k_none);
  CHECK(of(shipped("nrp")) == k_none);
  CHECK(of(shipped("ospool")) == k_unknown);
  // Without payload containers it is not our image.
  CHECK(of(Json::parse(R"({"kind": "Pod", "spec": {"containers": [{"name": "pilot"}]}})")) == k_unknown);
  CHECK(PodMaker::create(by_the_pod(), nullptr).value().pilot_attributes() == k_unknown);
  // Who says nothing may have anything in an image of his own.
  CHECK(of(shipped("provisioner"), {}) == k_unknown);
}

TEST_CASE("pilot attributes: the environment names more, or says what cannot be followed") {
  CHECK(with({{"_CONDOR_STARTD_ATTRS", "$(STARTD_ATTRS) SiteName, Rack"},
              {"_CONDOR_SiteName", "\"here\""}}) == PilotAttributes{true, {"SiteName", "Rack"}});
  CHECK(with({{"_condor_slot_type_1_startd_attrs", "SiteName"}}) == PilotAttributes{true, {"SiteName"}});
  CHECK(with({{"_CONDOR_STARTD_EXPRS", "SiteName"}}) == PilotAttributes{true, {"SiteName"}});
  CHECK(with({{"_CONDOR_UPDATE_INTERVAL", "10"}, {"_CONDOR_STARTD_DEBUG", "D_ALL"}, {"ANYTHING", "x"}}) ==
        k_none);
  for (const auto* name : {"_CONDOR_SiteName", "_CONDOR_STARTD_CRON_JOBLIST", "_CONDOR_LOCAL_CONFIG_FILE",
                           "_CONDOR_MACHINE_RESOURCE_X", "_CONDOR_MEMORY", "CONDOR_CONFIG",
                           "GLIDEPOD_COMMAND", "NUM_CPUS", "MEMORY"}) {
    CAPTURE(name);
    CHECK(with({{name, "99"}}) == k_unknown);
  }
  for (const auto* value : {"$(STARTD_ATTRS) $(MORE.X", "$$(A)", "A;B", "A.B", "$ENV(X)"}) {
    CAPTURE(value);
    CHECK(with({{"_CONDOR_STARTD_ATTRS", value}}) == k_unknown);
  }
  auto pod = shipped("provisioner");
  for (auto& container : pod["spec"]["containers"])
    if (container["name"] == "pilot") container["envFrom"] = {{{"configMapRef", {{"name", "x"}}}}};
  CHECK(of(pod) == k_unknown);
  for (auto& container : pod["spec"]["containers"]) container.erase("envFrom");
  CHECK(of(pod) == k_none);
  for (auto& container : pod["spec"]["containers"])
    if (container["name"] == "pilot")
      container["env"].push_back(
          {{"name", "_CONDOR_STARTD_ATTRS"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "a"}}}}}});
  CHECK(of(pod) == k_unknown);
}

TEST_CASE("pilot attributes: configuration that is mounted is not seen") {
  for (const auto* path : {"/etc/condor", "/etc/condor/config.d", "/etc/condor/config.d/99-site.config",
                           "/etc", "/usr/local/bin", "/", "/etc/glidepod", "/etc/glidepod/agent.conf"}) {
    CAPTURE(path);
    CHECK(mounted_at(path) == k_unknown);
  }
  for (const auto* path : {"/cvmfs", "/etc/condor/tokens.d", "/etc/condor/passwords.d",
                           "/etc/glidepod/registry", "/etc/condor-ce", "/etcetera"}) {
    CAPTURE(path);
    CHECK(mounted_at(path) == k_none);
  }
  auto settings = by_the_pod();
  settings.config_volumes = {{"site", "/etc/condor/config.d/99-site.config"}};
  CHECK(of(shipped("provisioner"), settings) == k_unknown);
}

TEST_CASE("pilot attributes: what the settings say holds, whatever the pod shows") {
  KubernetesSettings settings;
  settings.pilot_attributes = List{"SiteName", "HAS_*"};
  CHECK(of(shipped("ospool"), settings) == PilotAttributes{true, {"SiteName", "HAS_*"}});
  settings.pilot_attributes = List{};
  CHECK(of(shipped("ospool"), settings) == k_none);
  settings.pilot_attributes = List{"SiteName", "*"};
  CHECK(of(shipped("provisioner"), settings) == k_unknown);
}
