#pragma once

#include <string>

#include "lib/kube/client.hpp"
#include "provisioner/backends/table.hpp"

namespace glidepod::provisioner {

// What the command line says.
struct ServiceOptions {
  const BackendKind* backend = &backend_kinds().front();
  List files;  // empty: PRP's, those that exist
  // The Kubernetes API from outside a cluster; no URL and no socket: as a pod finds it.
  kube::Endpoint api;
  std::string listen;         // "HOST:PORT" for probes and metrics; empty: none
  bool serve_status = false;  // also what `status` tells, to whoever can reach that
  // A folder of mounted tokens that HTCondor's tools cannot use as it is, and where its copy is (tokens.hpp).
  std::string tokens, token_copies;
  std::string lease;  // "NAME" or "NAMESPACE/NAME": only its holder makes pods; empty: this one does
};

}  // namespace glidepod::provisioner
