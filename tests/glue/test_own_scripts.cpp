#include "glue/own_scripts.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using Strings = std::vector<std::string>;

namespace {

// What a launch writes, started by itself.
std::string output_of(const wire::Launch& launch) {
  const Fd out(::memfd_create("out", MFD_CLOEXEC)), null = open_file("/dev/null", O_RDONLY).value();
  auto child = Child::spawn({.argv = launch.argv,
                             .environment = launch.environment,
                             .stdin_fd = null.get(),
                             .stdout_fd = out.get(),
                             .stderr_fd = out.get()});
  REQUIRE(child);
  REQUIRE(child->wait());
  ::lseek(out.get(), 0, SEEK_SET);
  return read_all(out, "output", 1 << 20).value();
}

}  // namespace

TEST_CASE("own scripts: through a shell a job has its arguments and its variables as they were") {
  wire::Launch launch;
  launch.argv = {
      "/bin/sh", "-c",    R"(printf '[%s]' "$@" "$A" "$PATH" "$__GLIDEPOD_0"; env | grep -c GLIDEPOD)",
      "name",    "",      "two words",
      "a\nb",    "$(id)", "'\""};
  launch.environment = {"A=$(id) 'x' \"y\"\nz", "PATH=/usr/bin:/bin", "EMPTY="};
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    CAPTURE(shell);
    CHECK(output_of(through_shell(launch, shell)) ==
          "[][two words][a\nb][$(id)]['\"][$(id) 'x' \"y\"\nz][/usr/bin:/bin][]0\n");
  }
}

TEST_CASE("own scripts: what extends the path goes around the one that the scripts have made") {
  wire::Launch launch;
  launch.argv = {"/bin/sh", "-c", "echo $PATH"};
  launch.environment = {"PATH=/bin", "SING_USER_DEFINED_PREPEND_PATH=/before",
                        "SING_USER_DEFINED_APPEND_PATH=/after"};
  CHECK(output_of(through_shell(launch, "/bin/sh")) == "/before:/bin:/after\n");
}

TEST_CASE("own scripts: names that no shell can set go by") {
  wire::Launch launch;
  launch.argv = {"/usr/bin/env"};
  launch.environment = {"UID=7", "a.b=1", "1x=2", "novalue", "=x"};
  const auto result = through_shell(launch, "/bin/bash");
  CHECK(result.environment == launch.environment);
  CHECK(result.argv[2].find("UID") == std::string::npos);
}

TEST_CASE("own scripts: without a runscript it is the image's shell, with the arguments") {
  wire::Launch launch;
  launch.argv = {"runscript", "-c", "echo $1 $A", "sh", "one"};
  launch.environment = {"A=2"};
  launch.runscript = true;
  const auto result = through_shell(launch, "/bin/sh");
  CHECK_FALSE(result.runscript);
  CHECK(output_of(result) == "one 2\n");
}

TEST_CASE("own scripts: an app is started instead, and its name is what the scripts choose by") {
  CHECK(runscripts({"A=1"}) == Strings{"/.singularity.d/runscript", "/apptainer", "/bin/sh"});
  CHECK(runscripts({"SINGULARITY_APPNAME=one"}) == Strings{"/scif/apps/one/scif/runscript"});
  wire::Launch launch;
  launch.argv = {"runscript", "a"};
  launch.environment = {"SINGULARITY_APPNAME=../../../bin"};
  launch.runscript = true;
  const auto result = through_shell(launch, "/bin/sh");
  CHECK(result.environment == launch.environment);
  CHECK(result.argv[2].find("exec \"/scif/apps/$SINGULARITY_APPNAME/scif/runscript\"") != std::string::npos);
}

TEST_CASE("own scripts: which shell an image has") {
  const TemporaryFolder folder;
  const Fd root = open_file(folder.path, O_PATH | O_DIRECTORY).value();
  CHECK(shell_of(root).empty());
  std::filesystem::create_directories(folder.path + "/usr/bin");
  std::filesystem::create_directory_symlink("usr/bin", folder.path + "/bin");
  REQUIRE(replace_file(folder.path + "/usr/bin/sh", "", 0644, Durable::no));
  CHECK(shell_of(root).empty());
  std::filesystem::permissions(folder.path + "/usr/bin/sh", std::filesystem::perms(0755));
  CHECK(shell_of(root) == "/bin/sh");
  REQUIRE(replace_file(folder.path + "/usr/bin/bash", "", 0755, Durable::no));
  CHECK(shell_of(root) == "/bin/bash");
}
