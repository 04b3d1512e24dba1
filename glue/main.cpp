#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "glue/events.hpp"
#include "glue/install.hpp"
#include "glue/serve.hpp"

namespace glidepod::glue {

namespace {

constexpr int k_exit_failure = 1;
constexpr int k_exit_usage = 2;

constexpr std::string_view k_help =
    "glue runs HTCondor jobs in a payload container of a Glidepod pod. It is that container's entrypoint: "
    "it\n"
    "waits for the pilot's agent, starts the jobs the agent asks for as unprivileged users, and leaves "
    "nothing\n"
    "of them behind. It is not meant to be run by hand.\n"
    "\n"
    "  glue --container NAME [--run-directory DIR] [--scratch-directory DIR] [--unprivileged]\n"
    "                     serve; NAME is the container's own name in the pod\n"
    "    --run-directory      where the agent listens at agent.sock (/glidepod/run)\n"
    "    --scratch-directory  the job sandboxes shared by the pod's containers (/glidepod/scratch)\n"
    "    --unprivileged       not as root: jobs run as glue's own user, who is not kept from the pilot's "
    "processes\n"
    "  glue --install DIR   copy this program to DIR/bin/glue and make DIR/run and DIR/scratch\n"
    "  glue --help, glue --version\n"
    "\n"
    "glue reads no environment variables: they are the image's. A job has 600 s to end after SIGTERM.\n"
    "Needs Linux 5.6 or newer and, but for --unprivileged, root with CAP_SETUID, CAP_SETGID, CAP_KILL.\n"
    "Exit codes: 0 the pilot has ended, or what an option asked for is done; 1 failure; 2 usage; 143 ended\n"
    "by SIGTERM or another signal that an image may name as its STOPSIGNAL, a running job having been ended\n"
    "first.\n";

struct Arguments {
  enum class What : std::uint8_t { nothing, help, version, install, serve };
  What what = What::nothing;
  std::string directory;  // install
  bool unprivileged = false;
  ServerOptions server;
};

Result<Arguments> parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& option = words[i];
    if (option == "--help" || option == "-h") {
      arguments.what = Arguments::What::help;
      return arguments;
    }
    if (option == "--version") {
      arguments.what = Arguments::What::version;
      return arguments;
    }
    if (option == "--unprivileged") {
      arguments.unprivileged = true;
      continue;
    }
    std::string* target = option == "--container"           ? &arguments.server.container
                          : option == "--run-directory"     ? &arguments.server.run_directory
                          : option == "--scratch-directory" ? &arguments.server.scratch_directory
                          : option == "--install"           ? &arguments.directory
                                                            : nullptr;
    if (target == nullptr) return error("unknown argument {}", option);
    if (i + 1 == words.size() || words[i + 1].empty()) return error("{} needs a value", option);
    *target = words[++i];
  }
  if (!arguments.directory.empty())
    arguments.what = Arguments::What::install;
  else if (!arguments.server.container.empty())
    arguments.what = Arguments::What::serve;
  return arguments;
}

void print(int fd, std::string_view text) {
  [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
}

// Descriptors 0 to 2 are given to every job; if one were closed, some socket would land there.
void open_standard_descriptors() {
  int fd = 0;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) ::close(fd);
}

int run(const std::vector<std::string>& words) {
  auto arguments = parse(words);
  if (!arguments) {
    print(2, fmt::format("glue: {}\n\n{}", arguments.error().message(), k_help));
    return k_exit_usage;
  }
  Result<int> code = 0;
  switch (arguments->what) {
    case Arguments::What::nothing:
      print(2, k_help);
      return k_exit_usage;
    case Arguments::What::help:
      print(1, k_help);
      return 0;
    case Arguments::What::version:
      print(1, "glue " GLIDEPOD_VERSION "\n");
      return 0;
    case Arguments::What::install: {
      const auto installed = install(arguments->directory);
      if (!installed) code = installed.error().in("install");
      break;
    }
    case Arguments::What::serve:
      code = serve(std::move(arguments->server), arguments->unprivileged);
      break;
  }
  if (code) return *code;
  say("event=failed reason={}", value(code.error().message()));
  return k_exit_failure;
}

}  // namespace

}  // namespace glidepod::glue

int main(int argc, char** argv) {
  glidepod::glue::open_standard_descriptors();
  glidepod::glue::take_over_signals();
  return glidepod::glue::run({argv + 1, argv + argc});
}
