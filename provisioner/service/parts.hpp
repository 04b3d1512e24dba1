#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "provisioner/offline/offline_demand.hpp"
#include "provisioner/service/cycle.hpp"
#include "provisioner/service/lease.hpp"
#include "provisioner/service/options.hpp"

namespace glidepod::provisioner {

// The settings with all that they refer to, as of one reading.
struct Configuration {
  LoadedSettings loaded;
  nlohmann::json pod_template;    // null: none
  List files;                     // what was read, and what would be if it were there
  std::uint64_t fingerprint = 0;  // of their contents: another one means that something changed
};
Result<Configuration> read_configuration(const ServiceOptions& options);

// What the files hold now, as Configuration::fingerprint has it.
std::uint64_t fingerprint_of(const List& files);

// Where the service account of a pod is mounted.
inline constexpr const char* k_service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
// The API that the options name, or else the one that a pod finds.
Result<kube::Endpoint> endpoint_of(const ServiceOptions& options);
// The pod's own namespace.
Result<std::string> own_namespace();
// What --lease names, and an identity for it that no other process has: this host's name, "_" and more.
Result<LeaseOptions> lease_of(const ServiceOptions& options);

// What a running instance writes (status_file); null where there is no such file, or it is no status.
nlohmann::json read_status(const std::string& file);

struct Parts;
// The lease as the API has it; null where there is none. Takes the parts' client; runs the loop.
Result<nlohmann::json> read_lease(Loop& loop, const Parts& parts, const LeaseOptions& named);
// What the leader remembers (memory.hpp): as its lease has it, or without --lease its status file; null where
// there is nothing. Runs the loop.
Result<nlohmann::json> leaders_memory(Loop& loop, const Parts& parts, const ServiceOptions& options);

// What operators have drained, as that lease has it; none without --lease. Runs the loop.
Result<DrainList> leaders_drained(Loop& loop, const Parts& parts, const ServiceOptions& options);

// All that a cycle needs, made from one configuration. Its parts point at each other: it does not move.
struct Parts {
  Settings settings;  // with what the backend found out
  condor::ChildRunner runner;
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CondorDemand> demand;
  std::unique_ptr<OfflineDemand> offline;  // none where the query is all
  std::unique_ptr<Cycle> cycle;

  explicit Parts(Loop& loop) : runner(loop) {}
  // The observer is told of every attempt to call the API.
  static Result<std::unique_ptr<Parts>> make(Loop& loop, const ServiceOptions& options,
                                             const Configuration& configuration, PodFeed::Mode mode,
                                             kube::Client::Observer observer);
};

}  // namespace glidepod::provisioner
