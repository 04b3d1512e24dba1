#include "glue/no_files.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "lib/base/beneath.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::glue;
namespace fs = std::filesystem;

TEST_CASE("no files: what the runtime makes for its mounts is no file of an image") {
  const TemporaryFolder root;
  const std::vector<std::string> mounts = {"/", "/proc", "/etc/hosts", "/run/secrets/a b", "/glidepod/bin"};
  for (const auto* folder : {"proc", "etc", "run/secrets/a b", "glidepod/bin"})
    fs::create_directories(fs::path(root.path) / folder);
  for (const auto* name : {"etc/hosts", "proc/1", "glidepod/bin/glue"})
    std::ofstream(fs::path(root.path) / name) << "x";
  fs::create_symlink("/proc/mounts", fs::path(root.path) / "etc/mtab");
  bool none = false;
  SUBCASE("nothing else is there") {
    none = true;
  }
  SUBCASE("a program") {
    std::ofstream(fs::path(root.path) / "look") << "x";
  }
  SUBCASE("an empty folder") {
    fs::create_directory(fs::path(root.path) / "tmp");
  }
  SUBCASE("a file beside one of the runtime's") {
    std::ofstream(fs::path(root.path) / "etc/passwd") << "x";
  }
  SUBCASE("a link that leads nowhere") {
    fs::create_symlink("nowhere", fs::path(root.path) / "run/link");
  }
  CHECK(has_no_file(open_tree(root.path, O_RDONLY), mounts) == none);
}

TEST_CASE("no files: an image that cannot be read may have some") {
  const TemporaryFolder root;
  CHECK(has_no_file(open_tree(root.path, O_RDONLY), {}));
  CHECK_FALSE(has_no_file(Fd(), {}));
  CHECK_FALSE(image_has_no_file());
}

TEST_CASE("no files: mount points are as the kernel writes them") {
  const auto points = mount_points(
      "22 27 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
      "31 27 0:28 /a\\040b /run/a\\040b\\134c rw - tmpfs tmpfs rw\n"
      "short line\n");
  CHECK(points == std::vector<std::string>{"/sys", "/run/a b\\c"});
  CHECK(mount_points("1 2 3 4 /a\\04").front() == "/a\\04");
}
