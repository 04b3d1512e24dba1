#include "podhost/spec/environment.hpp"

#include <doctest/doctest.h>

#include "podhost/runtime/container_config.hpp"
#include "podhost/store/log_file.hpp"
#include "tests/podhost/pods.hpp"

using namespace glidepod::podhost;

TEST_CASE("environment: $(NAME) is expanded as Kubernetes does") {
  const std::map<std::string, std::string> variables = {{"A", "1"}, {"EMPTY", ""}};
  CHECK(expand("$(A)", variables) == "1");
  CHECK(expand("x$(A)y$(A)", variables) == "x1y1");
  CHECK(expand("$$(A)", variables) == "$(A)");
  CHECK(expand("$$$(A)", variables) == "$1");
  CHECK(expand("$(NONE)", variables) == "$(NONE)");
  CHECK(expand("$(EMPTY)", variables) == "");
  CHECK(expand("$A $ $(A", variables) == "$A $ $(A");
  CHECK(expand("$", variables) == "$");
}

TEST_CASE("environment: every source of a variable") {
  Json pod = sample_pod();
  pod["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "1500m"}, {"memory", "1Gi"}}}};
  pod["spec"]["containers"][0]["env"] = Json::parse(R"json([
    {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "BOTH", "value": "$(NAME)-$(LATER)"},
    {"name": "LATER", "value": "z"},
    {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    {"name": "MILLI", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    {"name": "OTHER", "valueFrom": {"resourceFieldRef": {"containerName": "payload-0", "resource": "limits.cpu"}}}])json");
  PodFacts facts;
  facts.labels = {{"app", "x"}};
  facts.pod_ip = "10.0.0.1";
  facts.node_cpu_milli = 4000;
  const PodSpec spec = sample_spec(pod);
  const auto variables = make_environment(spec, spec.containers[0], facts);
  CHECK(variables.at("BOTH") == "p-$(LATER)");
  CHECK(variables.at("LABEL") == "x");
  CHECK(variables.at("IP") == "10.0.0.1");
  CHECK(variables.at("CPU") == "2");
  CHECK(variables.at("MILLI") == "1500");
  CHECK(variables.at("MEM") == "1024");
  CHECK(variables.at("OTHER") == "4");
}

TEST_CASE("environment: no device is to be seen, unless the pod says otherwise") {
  Json pod = sample_pod();
  CHECK(make_environment(sample_spec(pod), sample_spec(pod).containers[1], {}).at("NVIDIA_VISIBLE_DEVICES") ==
        "void");
  pod["spec"]["containers"][1]["env"] = {{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "0"}}};
  CHECK(make_environment(sample_spec(pod), sample_spec(pod).containers[1], {}).at("NVIDIA_VISIBLE_DEVICES") ==
        "0");
}

TEST_CASE("container_config: a payload container in podman's words") {
  Json pod = sample_pod();
  pod["spec"]["securityContext"] = {{"fsGroup", 7}, {"supplementalGroups", {8}}};
  pod["spec"]["containers"][1]["args"] = {"--name", "$(X)"};
  pod["spec"]["containers"][1]["env"] = {{{"name", "X"}, {"value", "v"}}};
  pod["spec"]["containers"][1]["resources"] = {{"limits", {{"cpu", "500m"}, {"memory", "64Mi"}}}};
  pod["spec"]["containers"][1]["securityContext"] = Json::parse(R"({"runAsUser": 0, "runAsGroup": 9,
    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
    "capabilities": {"drop": ["ALL"], "add": ["KILL", "CAP_SETUID"]}})");
  const PodSpec spec = sample_spec(pod);
  ContainerPlan plan;
  plan.pids_limit = 100;
  plan.mounts = {{"/host/x", "/s", true}};
  const Json config = container_config(spec, spec.containers[1], {.id = "abc", .user = "5"}, {}, plan);
  CHECK(config["image"] == "abc");
  CHECK(config["entrypoint"] == Json{"glue"});
  CHECK(config["command"] == Json{"--name", "v"});
  CHECK(config["user"] == "0:9");
  CHECK(config["groups"] == Json{"8", "7"});
  CHECK(config["cap_drop"] == Json{"ALL"});
  CHECK(config["cap_add"] == Json{"CAP_KILL", "CAP_SETUID"});
  CHECK(config["no_new_privileges"] == true);
  CHECK(config["read_only_filesystem"] == true);
  CHECK(config["resource_limits"]["cpu"]["quota"] == 50000);
  CHECK(config["resource_limits"]["memory"]["limit"] == 67108864);
  CHECK(config["resource_limits"]["pids"]["limit"] == 100);
  CHECK(config["mounts"][0]["options"] == Json{"rbind", "rprivate", "ro"});
  CHECK_FALSE(config.contains("seccomp_profile_path"));
}

TEST_CASE("container_config: what the image says stays where the pod says nothing") {
  const PodSpec spec = sample_spec(sample_pod());
  const Json config = container_config(spec, spec.containers[0], {.id = "abc", .user = "www:data"}, {}, {});
  CHECK_FALSE(config.contains("entrypoint"));
  CHECK_FALSE(config.contains("command"));
  CHECK(config["user"] == "www:data");
}

TEST_CASE("container_config: the imageID is of the repository asked for") {
  const std::string a(64, 'a'), b(64, 'b');
  const ImageInfo image{
      "id", {"q.io/x@sha256:" + a, "docker.io/library/y@sha256:" + a, "docker.io/library/y@sha256:" + b}, ""};
  CHECK(image_id_text("y:1", image) == "docker.io/library/y@sha256:" + a);
  CHECK(image_id_text("y:n@sha256:" + b, image) == "docker.io/library/y@sha256:" + b);
  CHECK(image_id_text("q.io/x", image) == "q.io/x@sha256:" + a);
  CHECK(image_id_text("q.io/z", {"id", {}, ""}) == "sha256:id");
}

TEST_CASE("log_file: records become what the container wrote") {
  const std::string log =
      "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stderr P tw\n"
      "2026-01-01T00:00:02Z stderr F o\n2026-01-01T00:00:03Z stdout F \n";
  CHECK(LogReader(false).feed(log) == "one\ntwo\n\n");
  CHECK(LogReader(true).feed(log) ==
        "2026-01-01T00:00:00Z one\n2026-01-01T00:00:01Z two\n2026-01-01T00:00:03Z \n");
  LogReader bytewise(false);
  std::string text;
  for (const char c : log) text += bytewise.feed(std::string(1, c));
  CHECK(text == "one\ntwo\n\n");
  CHECK(LogReader(false).feed("garbage\n\n x\n").empty());
}

TEST_CASE("log_file: the last lines") {
  const std::string log = "t stdout F a\nt stdout P b\nt stdout F c\nt stdout F d\n";
  const auto tail = [&](std::int64_t count) {
    return LogReader(false).feed(log.substr(tail_offset(log, count)));
  };
  CHECK(tail(0).empty());
  CHECK(tail(1) == "d\n");
  CHECK(tail(2) == "bc\nd\n");
  CHECK(tail(3) == "a\nbc\nd\n");
  CHECK(tail(99) == "a\nbc\nd\n");
  CHECK(tail_offset("", 3) == 0);
}
