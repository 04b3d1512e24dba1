#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace glidepod::podhost {

// What the command line says.
struct Options {
  std::string state_dir = "/var/lib/podhost";
  std::string socket = "/run/podhost.sock";
  int port = -1;  // loopback TCP; -1: none
  std::string token_file;
  std::string node_name;
  std::string host_ip;
  std::string podman = "podman";
  std::string podman_root, podman_runroot, podman_tmpdir;
  std::vector<std::string> podman_options;
  std::int64_t pids_limit = 4096;
  std::int64_t backoff_seconds = 10;
  std::int64_t backoff_limit_seconds = 300;
  bool allow_privileged = false;
  bool stop_pods = false;
  std::string log_level = "info";
};

}  // namespace glidepod::podhost
