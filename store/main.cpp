// image-store: README.md beside this file.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <new>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "store/confine.hpp"
#include "store/keeper.hpp"
#include "store/layout.hpp"
#include "store/make.hpp"
#include "store/serve.hpp"

using namespace glidepod;
using namespace glidepod::store;

namespace {

constexpr int k_failed = 1;
constexpr int k_usage = 2;
constexpr int k_bad_image = 3;

int end_as(const Error& why) {
  return why.fact<BadImage>() != nullptr ? k_bad_image : k_failed;
}

Result<Layer> read_image() {
  const Limits limits;
  const Fd file(STDIN_FILENO), out(STDOUT_FILENO);
  TRY(confine(limits));
  try {
    return write_layer(file, limits, [&out](std::string_view bytes) { return write_all(out, bytes); });
  } catch (const std::bad_alloc&) {  // there is a limit, and who reaches it is hostile
    return error("to read the image takes more than {} MiB of memory", limits.memory >> 20).with(BadImage{});
  }
}

int layer() {
  const auto result = read_image();
  const Fd report(STDERR_FILENO);
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

struct Service {
  std::string socket = "/run/image-store.sock", folder = "/var/lib/image-store";
  std::string repository = "localhost/glidepod-files";
  std::string podman = "podman";
  std::vector<std::string> podman_options;
};

Result<void> serve(const Service& service) {
  ::umask(0077);
  std::vector<std::string> command = {service.podman};
  command.insert(command.end(), service.podman_options.begin(), service.podman_options.end());
  PodmanShelf shelf(command, service.repository);
  Keeper keeper({.folder = service.folder, .repository = service.repository}, shelf);
  TRY(keeper.prepare());
  Loop loop = TRY(Loop::create());
  TRY(loop.on_signals({SIGTERM, SIGINT}, [&loop](const signalfd_siginfo&) { loop.stop(); }));
  Server server(loop, keeper);
  TRY(server.listen(service.socket));
  spdlog::info("event=ready socket={} folder={} repository={}", service.socket, service.folder,
               service.repository);
  return loop.run();
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
  auto* layer_command = app.add_subcommand(
      "layer",
      "Reads an image file as standard input, writes its layer (tar, zstd) to standard output and one line "
      "about it to standard error; gives up all rights before it reads");
  Service service;
  auto* serve_command = app.add_subcommand(
      "serve",
      "Makes images of the files that pilots' agents on this machine hand over, and puts them into podman");
  serve_command->option_defaults()->always_capture_default();
  serve_command->add_option("--socket", service.socket, "the Unix socket, root only");
  serve_command->add_option("--folder", service.folder, "what is known, and files that are being read");
  serve_command->add_option("--repository", service.repository, "what the images are called");
  serve_command->add_option("--podman", service.podman, "the podman program");
  serve_command->add_option("--podman-option", service.podman_options,
                            "one more global option for podman; may be repeated");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? 0 : k_usage;
  }
  if (layer_command->parsed()) return layer();
  if (serve_command->parsed()) {
    start_log("image-store");
    const auto served = serve(service);
    if (!served) spdlog::error("event=failed reason={}", quoted(served.error().message()));
    return served ? 0 : k_failed;
  }
  return convert(file, folder, name);
} catch (const std::exception& problem) {
  ::fprintf(stderr, "image-store: %s\n", problem.what());
  return k_failed;
}
