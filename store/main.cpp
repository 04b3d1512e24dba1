// image-store: README.md beside this file.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <new>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "store/confine.hpp"
#include "store/layout.hpp"
#include "store/make.hpp"
#include "store/service.hpp"

using namespace glidepod;
using namespace glidepod::store;

namespace {

constexpr int k_failed = 1;
constexpr int k_usage = 2;
constexpr int k_bad_image = 3;

int end_as(const Error& why) {
  return why.fact<BadImage>() != nullptr ? k_bad_image : k_failed;
}

Result<Layer> read_image(const Fd& report) {
  const Limits limits;
  const Fd file(STDIN_FILENO), out(STDOUT_FILENO);
  TRY(confine(limits));
  try {
    return write_layers(
        file, limits, [&out](std::string_view bytes) { return write_all(out, bytes); },
        [&report](const LayerEnd& end) { return write_all(report, end.to_line() + "\n"); });
  } catch (const std::bad_alloc&) {  // there is a limit, and who reaches it is hostile
    return error("to read the image takes more than {} MiB of memory", limits.memory >> 20).with(BadImage{});
  }
}

int layer() {
  const Fd report(STDERR_FILENO);
  const auto result = read_image(report);
  const std::string line = result ? result->to_line()
                                  : json_text({{"error", result.error().message()},
                                               {"image", result.error().fact<BadImage>() != nullptr}});
  if (!write_all(report, line + "\n")) return k_failed;
  return result ? 0 : end_as(result.error());
}

Result<Made> convert_file(const std::string& file, const std::string& folder, const std::string& name) {
  const Fd image = TRY(open_file(file, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  Layout layout(folder, name);
  TRY(layout.prepare());
  Made made = TRY(make_image(image, layout, {}));
  TRY(layout.finish(made.manifest));
  return made;
}

int convert(const std::string& file, const std::string& folder, const std::string& name) {
  const auto made = convert_file(file, folder, name);
  if (!made) {
    ::fprintf(stderr, "image-store: %s: %s\n", file.c_str(), made.error().message().c_str());
    return end_as(made.error());
  }
  ::printf("%s\n", made->manifest.digest.c_str());
  if (made->layer.left_out > 0)
    ::fprintf(stderr, "image-store: %s: left out %s devices, sockets or names that remove others\n",
              file.c_str(), std::to_string(made->layer.left_out).c_str());
  return 0;
}

void declare(CLI::App& command, Service& service) {
  command.option_defaults()->always_capture_default();
  command.add_option("--folder", service.folder, "what is known, and files that are being read");
  command.add_option("--repository", service.repository, "what the images are called");
  command.add_option("--free-mib", service.free_mib, "MiB that stay free where the folder is");
  command.add_option("--quota-mib", service.quota_mib,
                     "MiB of images that one owner may have brought; 0: any number");
  command.add_option("--keep-days", service.keep_days,
                     "days after which an image that nobody asked for is removed; 0: none is");
  command.add_option(
      "--socket", service.socket,
      "the Unix socket of agents on this machine, root only; with --listen there is none unless named");
  command.add_option("--listen", service.listen,
                     "HOST:PORT or :PORT for agents elsewhere, by HTTPS; empty: none");
  command.add_option("--certificate", service.certificate,
                     "PEM file with the certificate, and those of authorities between");
  command.add_option("--key", service.key, "PEM file with its key");
  command.add_option("--account", service.accounts,
                     "NAMESPACE/NAME of a service account whose tokens are let in; may be repeated");
  command.add_option("--audience", service.audience, "what their tokens must be made for");
  command.add_option("--service-account", service.service_account,
                     "folder with this program's own token and ca.crt, to ask the API whose a token is");
  command.add_option("--podman", service.podman, "the podman program");
  command.add_option("--podman-option", service.podman_options,
                     "one more global option for podman; may be repeated");
  command.add_flag("--registry", service.registry,
                   "put images into the repository's registry, not into podman");
  command.add_option("--registry-auth", service.registry_auth,
                     "docker config.json with the registry's credentials; need not exist");
  command.add_option("--registry-ca", service.registry_ca,
                     "PEM file of the registry's authorities; empty: the system's");
  command.add_flag("--plain-http", service.plain_http, "speak HTTP to the registry, without TLS");
}

}  // namespace

int main(int argc, char** argv) try {
  ::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Makes OCI images of image files: of a SIF, as Apptainer builds it, or of a squashfs.",
               "image-store");
  app.set_version_flag("--version", "image-store " GLIDEPOD_VERSION);
  app.require_subcommand(1);
  app.footer("Exit: 0 done; 1 it failed here; 2 the command line is wrong; 3 the image is at fault.");
  std::string file, folder, name;
  auto* convert_command = app.add_subcommand(
      "convert", "Writes an image file as an OCI image layout, and prints the digest of its manifest");
  convert_command->add_option("FILE", file, "the image file; it must not change meanwhile")->required();
  convert_command->add_option("FOLDER", folder, "the layout's folder; made if it is missing")->required();
  convert_command->add_option("--name", name, "the image's name in the layout");
  auto* layer_command =
      app.add_subcommand("layer",
                         "Reads an image file as standard input, writes its layers to standard output, tar "
                         "after tar, and a line "
                         "about each to standard error; gives up all rights before it reads");
  Service service;
  auto* serve_command = app.add_subcommand(
      "serve",
      "Makes images of the files that pilots' agents bring, and puts them into podman or a registry");
  declare(*serve_command, service);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? 0 : k_usage;
  }
  if (layer_command->parsed()) return layer();
  if (serve_command->parsed()) {
    start_log("image-store");
    if (!service.listen.empty() && serve_command->count("--socket") == 0) service.socket.clear();
    const auto served = serve(service);
    if (!served) spdlog::error("event=failed reason={}", quoted(served.error().message()));
    return served ? 0 : k_failed;
  }
  return convert(file, folder, name);
} catch (const std::exception& problem) {
  ::fprintf(stderr, "image-store: %s\n", problem.what());
  return k_failed;
}
