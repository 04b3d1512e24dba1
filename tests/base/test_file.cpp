#include "lib/base/file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/temporary_folder.hpp"

using namespace glidepod;

TEST_CASE("file: replace_file replaces as a whole and leaves nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/f";
  REQUIRE(replace_file(path, "one", 0600).ok());
  REQUIRE(replace_file(path, "two", 0555).ok());
  CHECK(read_file(path).value() == "two");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0555);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("file: errors name the file") {
  const TemporaryFolder folder;
  CHECK(read_file("/nonexistent").error().message() == "open /nonexistent: No such file or directory");
  CHECK(replace_file("/nonexistent/f", "x", 0600)
            .error()
            .message()
            .starts_with("replace /nonexistent/f: open"));
  REQUIRE(replace_file(folder.path + "/f", "12345", 0600).ok());
  CHECK(read_file(folder.path + "/f", 4).error().message().ends_with("longer than 4 bytes"));
}

TEST_CASE("file: a full disk is reported and the old content stays") {
  const Fd full = open_file("/dev/full", O_WRONLY).value();
  CHECK(write_all(full, "x").error().code() == ENOSPC);
}
