#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::store {

// What `image-store serve` is told.
struct Service {
  std::string folder = "/var/lib/image-store";
  std::string repository = "localhost/glidepod-files";
  std::uint64_t free_mib = 1024;
  std::uint64_t quota_mib = 0;
  std::uint32_t keep_days = 0;
  // Agents of this machine, by a Unix socket. Empty: none.
  std::string socket = "/run/image-store.sock";
  // Agents elsewhere, by HTTP; empty: none.
  std::string listen;
  std::string certificate, key;
  std::string audience = "image-store";
  std::vector<std::string> accounts = {"glidepod/glidepod-pilot"};
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  // Where images go: podman, or the repository's registry.
  std::string podman = "podman";
  std::vector<std::string> podman_options;
  bool registry = false;
  std::string registry_auth, registry_ca;
  bool plain_http = false;
};

// Serves until it is told to end.
Result<void> serve(const Service& service);

}  // namespace glidepod::store
