#include "podhost/runtime/container_config.hpp"

#include <doctest/doctest.h>

#include "tests/podhost/pods.hpp"

using namespace glidepod::podhost;
using Json = nlohmann::json;

namespace {

// Where /etc/hosts of the first container comes from; empty: podman's own.
std::string source_of_hosts(const ContainerPlan& plan) {
  const PodSpec pod = sample_spec(sample_pod());
  std::string source;
  const Json config = container_config(pod, pod.containers.front(), {}, {}, plan);
  for (const Json& mount : config["mounts"]) {
    if (mount["destination"] != "/etc/hosts") continue;
    CHECK(source.empty());
    source = mount["source"];
  }
  return source;
}

}  // namespace

TEST_CASE("container_config: /etc/hosts is the pod's, unless the pod mounts its own") {
  ContainerPlan plan;
  CHECK(source_of_hosts(plan).empty());
  plan.hosts_file = "/state/hosts";
  CHECK(source_of_hosts(plan) == "/state/hosts");
  plan.mounts = {{"/volume/hosts", "/etc/hosts", true}};
  CHECK(source_of_hosts(plan) == "/volume/hosts");
}

TEST_CASE("container_config: the hosts file names the pod") {
  PodSpec pod = sample_spec(sample_pod());
  pod.hostname = "pilot";
  CHECK(hosts_text(pod, "10.88.0.3").ends_with("\n10.88.0.3\tpilot\n"));
  CHECK(hosts_text(pod, "").find("pilot") == std::string::npos);
  CHECK(hosts_text(pod, "").find("127.0.0.1\tlocalhost\n") != std::string::npos);
}
