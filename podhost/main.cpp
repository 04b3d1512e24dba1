#include <stdio.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "lib/base/log.hpp"
#include "podhost/client.hpp"
#include "podhost/daemon.hpp"

namespace {

constexpr int k_exit_failed = 1;
constexpr int k_exit_usage = 2;

}  // namespace

int main(int argc, char** argv) try {
  using glidepod::podhost::Options;
  Options options;
  CLI::App app(
      "podhost: Kubernetes pods on a machine without Kubernetes, run by podman.\n"
      "Without a subcommand it serves the pod API on a Unix socket until SIGTERM; pods outlive it.");
  app.footer(
      "Exit codes: 0 asked to stop, or the request succeeded; 1 it failed; 2 wrong usage.\n"
      "podman's configuration comes from CONTAINERS_CONF, CONTAINERS_STORAGE_CONF and "
      "CONTAINERS_REGISTRIES_CONF.");
  app.set_version_flag("--version", "podhost " GLIDEPOD_VERSION);
  app.get_formatter()->column_width(34);
  app.option_defaults()->always_capture_default();
  app.add_option("--state-dir", options.state_dir, "where pods, volumes and logs are kept");
  app.add_option("--socket", options.socket, "the API's Unix socket, root only");
  app.add_option("--port", options.port,
                 "also listen on 127.0.0.1:PORT, with a token; 0: any free port; -1: the socket only")
      ->check(CLI::Range(-1, 65535));
  app.add_option("--token-file", options.token_file,
                 "the token for --port, made if missing (STATE_DIR/token)");
  app.add_option("--node-name", options.node_name, "spec.nodeName of every pod (the host's name)");
  app.add_option("--host-ip", options.host_ip, "status.hostIP (the first address of the host)");
  app.add_option("--podman", options.podman, "the podman program");
  app.add_option("--root", options.podman_root, "podman's --root");
  app.add_option("--runroot", options.podman_runroot, "podman's --runroot");
  app.add_option("--tmpdir", options.podman_tmpdir, "podman's --tmpdir");
  app.add_option("--podman-option", options.podman_options,
                 "one more global option for podman; may be repeated");
  app.add_option("--pids-limit", options.pids_limit,
                 "processes and threads a container may have; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--backoff", options.backoff_seconds,
                 "seconds before a crashed container's second restart; doubles")
      ->check(CLI::Range(1, 3600));
  app.add_option("--backoff-limit", options.backoff_limit_seconds, "seconds the back-off grows to")
      ->check(CLI::Range(1, 86400));
  app.add_flag("--allow-privileged", options.allow_privileged, "accept securityContext.privileged");
  app.add_flag("--stop-pods", options.stop_pods, "on SIGTERM, delete all pods before leaving");
  app.add_option("--log-level", options.log_level)->check(CLI::IsMember({"debug", "info", "warn", "error"}));

  glidepod::podhost::ClientCommand command;
  glidepod::podhost::add_client(app, &command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : k_exit_usage;
  }
  if (!command.verb.empty()) return run_client(options.socket, command);

  glidepod::start_log("podhost");
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  if (geteuid() != 0) {
    spdlog::error("event=failed error=\"podhost must run as root\"");
    return k_exit_failed;
  }
  if (const auto ran = glidepod::podhost::run_daemon(options); !ran) {
    spdlog::error("event=failed error={}", glidepod::quoted(ran.error().message()));
    return k_exit_failed;
  }
  spdlog::info("event=stopped");
  return 0;
} catch (const std::exception& problem) {
  ::fprintf(stderr, "podhost: %s\n", problem.what());
  return k_exit_failed;
}
