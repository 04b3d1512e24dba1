#include "podhost/runtime/volumes.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/temporary_folder.hpp"

using namespace glidepod::podhost;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    fs::create_directories(path + "/volume");
    fs::create_directories(path + "/outside");
  }
  glidepod::TemporaryFolder folder;
  const std::string& path = folder.path;
};

bool same_file(const glidepod::Fd& fd, const std::string& path) {
  struct stat one {
  }, other{};
  return fstat(fd.get(), &one) == 0 && stat(path.c_str(), &other) == 0 && one.st_ino == other.st_ino;
}

}  // namespace

TEST_CASE("volumes: a missing subPath is made") {
  Folder folder;
  const auto fd = open_inside(folder.path + "/volume", "a/b/c");
  REQUIRE(fd);
  CHECK(same_file(fd.value(), folder.path + "/volume/a/b/c"));
}

TEST_CASE("volumes: a subPath never leaves its volume") {
  Folder folder;
  const std::string volume = folder.path + "/volume";
  fs::create_symlink("../outside", volume + "/up");
  fs::create_symlink(folder.path + "/outside", volume + "/absolute");
  fs::create_symlink("/", volume + "/root");
  for (const std::string path : {"up", "up/x", "absolute", "absolute/x", "root/outside", "../outside"}) {
    const auto fd = open_inside(volume, path);
    CAPTURE(path);
    if (fd) CHECK_FALSE(same_file(fd.value(), folder.path + "/outside"));
  }
  CHECK(fs::is_empty(folder.path + "/outside"));
  CHECK_FALSE(open_inside(volume, "a/../../outside"));
}

TEST_CASE("volumes: a subPath may be a link inside its volume, or a file") {
  Folder folder;
  const std::string volume = folder.path + "/volume";
  fs::create_directories(volume + "/real");
  fs::create_symlink("real", volume + "/link");
  const auto fd = open_inside(volume, "link/x");
  REQUIRE(fd);
  CHECK(same_file(fd.value(), volume + "/real/x"));
}
