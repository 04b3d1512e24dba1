#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/config.hpp"
#include "pilot-agent/core/types.hpp"
#include "pilot-agent/image_rules.hpp"

namespace glidepod::agent {

// The agent's configuration, with its defaults. It stays where it is once it is declared.
struct Settings {
  std::string exec_socket = "/run/glidepod/exec.sock";
  std::string agent_socket = "/glidepod/run/agent.sock";
  bool pilot_jobs = false;
  std::string pilot_socket = "/glidepod/run/pilots.sock";
  std::string scratch = "/glidepod/scratch";
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string drained_file = "/var/run/secrets/kubernetes.io/serviceaccount/drained";
  std::string pod_name;
  std::string pod_namespace;
  std::string payload_containers;
  std::string image_store;
  std::string image_store_repository = "localhost/glidepod-files";
  std::string image_store_token = "/var/run/secrets/glidepod.io/image-store/token";
  std::string image_store_ca;
  std::string image_spool = "/glidepod/run";
  bool cvmfs_images = false;
  std::vector<std::string> image_rules = {
      "/cvmfs/singularity.opensciencegrid.org/{path} -> docker.io/{path}",
      "/cvmfs/unpacked.cern.ch/registry.hub.docker.com/{path} -> docker.io/{path}",
      "/cvmfs/unpacked.cern.ch/{path} -> {path}"};
  std::vector<std::string> shared_paths = {"/etc/hosts", "/etc/resolv.conf", "/dev", "/proc", "/sys"};
  Policy policy{.first = Policy::First::prove};
  // policy.spares is what these two say, the first before the second.
  std::optional<int> warm;    // none: auto
  std::optional<int> spares;  // its old name
  std::chrono::seconds vacate_patience{120};
  std::string hold_command = "/usr/libexec/glidepod/hold-job";
  std::string starter_address = "/var/log/condor/.starter_address.";
  std::string registry_auth = "/etc/glidepod/registry/config.json";
  std::string insecure_registries;
  std::string command = "/usr/sbin/condor_master -f";
  std::chrono::seconds start_wait{300};
  std::chrono::seconds shutdown_grace{0};
  std::string trusted_user = "condor";
  std::string termination_log = "/dev/termination-log";
  std::string failure_file = "/run/glidepod/failure";
  std::string status_file = "/run/glidepod/status.json";
  std::string slots_file = "/run/glidepod/slots.ads";
  std::string trouble_config = "/etc/condor/config.d/99-trouble.config";

  // How long the command has to end by itself, in a pod of this grace.
  std::chrono::seconds command_grace(std::chrono::seconds pod_grace) const;
  // Whether the old name of `warm` decides.
  bool by_old_name() const { return !warm && spares; }
  // The table of the keys: a new one needs its line there, and nothing else but the place of its value.
  void declare(Config& config);
  Result<std::vector<ImageRule>> rules() const;
  // The names configured; none if they are to be found out.
  std::vector<std::string> container_names() const;
  // The registries spoken to by plain HTTP, HOST[:PORT].
  std::vector<std::string> insecure_hosts() const;
  // The command's words; none if nothing is to be run.
  std::vector<std::string> command_words() const;
};

// docs/settings-agent.md, whole.
std::string settings_page();

// The command's environment: ours, with the number of jobs at a time, if there are payload containers, as
// GLIDEPOD_PAYLOAD_CONTAINERS.
std::vector<std::string> command_environment(const char* const* own, std::size_t jobs);

// HTCondor's configuration of a pilot that takes no more jobs: START, and GlidepodTrouble in its slots' ads.
std::string trouble_configuration(std::string_view reason);
// The same of one that an operator has drained: START, and GlidepodDrained.
std::string drained_configuration(std::string_view reason);

}  // namespace glidepod::agent
