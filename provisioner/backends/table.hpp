#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/condor/command.hpp"
#include "lib/kube/client.hpp"
#include "provisioner/backends/backend.hpp"
#include "provisioner/backends/pod_feed.hpp"

namespace glidepod::provisioner {

// What a backend is made from.
struct BackendParts {
  Loop& loop;
  condor::CommandRunner& runner;
  Settings& settings;  // what is not set and can be found out is filled in
  const nlohmann::json& pod_template;
  PodFeed::Mode mode;
  // The API, for a backend that speaks to it: where it is, the pod's own namespace if this runs in one, and
  // where the client that it needs is kept.
  std::function<Result<kube::Endpoint>()> endpoint;
  std::function<Result<std::string>()> own_namespace;
  std::unique_ptr<kube::Client>* client;
  kube::Client::Observer observer;  // of the clients that named places have
};

// A kind of backend: all that is particular to it.
struct BackendKind {
  std::string_view name;           // of --backend
  std::string_view settings_file;  // PRP's own, beside pod.conf
  bool pod_template;               // [k8s] pod_template is meant for it
  CondorDemand::Namespace name_space;
  const PilotSettings& (*pilots)(const Settings&);
  void (*limit)(Policy&, const Settings&);
  Result<std::unique_ptr<Backend>> (*make)(const BackendParts&);
};

// All of them, the default first.
std::span<const BackendKind> backend_kinds();
// nullptr if there is none of this name.
const BackendKind* find_backend(std::string_view name);
// PRP's files of settings for it, then those of manifests/, which our image has in the folder that it starts
// in. Those that exist are read in this order.
List default_files(const BackendKind& kind);

}  // namespace glidepod::provisioner
