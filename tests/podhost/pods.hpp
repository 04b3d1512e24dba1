#pragma once

#include <nlohmann/json.hpp>

#include "podhost/spec/pod_spec.hpp"

// A pod as podhost stores it, with two containers, to be changed by a test.
inline nlohmann::json sample_pod() {
  auto pod = nlohmann::json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "uid": "u-1", "resourceVersion": "7", "labels": {"app": "x"}},
    "spec": {
      "volumes": [{"name": "shared", "emptyDir": {}}],
      "containers": [
        {"name": "pilot", "image": "pilot:1", "volumeMounts": [{"name": "shared", "mountPath": "/s"}]},
        {"name": "payload-0", "image": "dummy:1", "command": ["glue"]}]},
    "status": {"phase": "Pending"}})");
  glidepod::podhost::set_defaults(pod, {.node_name = "node"});
  return pod;
}

inline glidepod::podhost::PodSpec sample_spec(const nlohmann::json& pod) {
  return glidepod::podhost::parse_pod(pod, {.node_name = "node"})->spec;
}
