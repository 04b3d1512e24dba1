#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "pilot-agent/users_file.hpp"
#include "tests/temporary_folder.hpp"

namespace glidepod::agent {
namespace {

TEST_CASE("users file: the next agent reads what this one has kept") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/users";
  CHECK(UsersFile(path).read().empty());
  UsersFile file(path);
  file.keep({});
  CHECK(::access(path.c_str(), F_OK) != 0);
  const std::set<User> users{{20001, 20001}, {20002, 20002, true}, {40000, 7}};
  file.keep(users);
  CHECK(UsersFile(path).read() == users);
  struct stat made {};
  REQUIRE(::stat(path.c_str(), &made) == 0);
  CHECK((made.st_mode & 0777) == 0600);
  file.keep(users);
  struct stat now {};
  REQUIRE(::stat(path.c_str(), &now) == 0);
  CHECK(now.st_ino == made.st_ino);
  file.keep({});
  CHECK(UsersFile(path).read().empty());
}

TEST_CASE("users file: one that does not read is nobody's") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/users";
  for (const char* text : {"20001 20001\nx y\n", "20001\n", "0 0\n", "-1 5\n", "4294967295 1\n", "1 2 3\n"}) {
    CAPTURE(text);
    REQUIRE(replace_file(path, text, 0600, Durable::no).ok());
    CHECK(UsersFile(path).read().empty());
  }
  CHECK(UsersFile(folder.path).read().empty());
  UsersFile("/proc/nowhere/users").keep({{1, 1}});
}

}  // namespace
}  // namespace glidepod::agent
