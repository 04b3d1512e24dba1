#pragma once

#include <nlohmann/json.hpp>

#include "lib/kube/client.hpp"
#include "provisioner/settings.hpp"

namespace glidepod::provisioner {

struct ServiceOptions {
  BackendKind backend = BackendKind::kubernetes;
  List files;  // empty: PRP's, those that exist
  // The Kubernetes API from outside a cluster; no URL and no socket: as a pod finds it.
  kube::Endpoint api;
};

// What one cycle would do, as report() puts it. Nothing is made or removed, nothing is written.
Result<nlohmann::json> plan_once(const ServiceOptions& options);

// Cycle after cycle until SIGTERM or SIGINT; what is under way then is waited for. SIGHUP reads the settings
// again and logs what changed; settings that are wrong leave the old ones in force.
Result<void> serve(const ServiceOptions& options);

}  // namespace glidepod::provisioner
