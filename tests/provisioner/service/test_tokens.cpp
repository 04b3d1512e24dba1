#include "provisioner/service/tokens.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace fs = std::filesystem;

namespace {

struct Folders {
  TemporaryFolder own;
  const std::string& folder = own.path;
  std::string from, to;

  Folders() {
    from = folder + "/from";
    to = folder + "/to";
    fs::create_directory(from);
  }
  void put(const std::string& name, const std::string& content) {
    REQUIRE(replace_file(from + "/" + name, content, 0640, Durable::no));
  }
  std::string got(const std::string& name) {
    const auto content = read_file(to + "/" + name);
    return content ? content.value() : "";
  }
};

}  // namespace

TEST_CASE("tokens: are copied for their user alone, and again when they change") {
  Folders f;
  f.put("provisioner", "one");
  REQUIRE(copy_tokens(f.from, f.to));
  CHECK(f.got("provisioner") == "one");
  struct stat found {};
  REQUIRE(::stat((f.to + "/provisioner").c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
  f.put("provisioner", "two");
  REQUIRE(copy_tokens(f.from, f.to));
  CHECK(f.got("provisioner") == "two");
  // What is the same is left as it is.
  REQUIRE(::stat((f.to + "/provisioner").c_str(), &found) == 0);
  const auto inode = found.st_ino;
  REQUIRE(copy_tokens(f.from, f.to));
  REQUIRE(::stat((f.to + "/provisioner").c_str(), &found) == 0);
  CHECK(found.st_ino == inode);
}

TEST_CASE("tokens: as Kubernetes mounts them, by way of links, and gone with the Secret's key") {
  Folders f;
  fs::create_directory(f.from + "/..2026");
  REQUIRE(replace_file(f.from + "/..2026/provisioner", "one", 0640, Durable::no));
  fs::create_symlink("..2026", f.from + "/..data");
  fs::create_symlink("..data/provisioner", f.from + "/provisioner");
  REQUIRE(copy_tokens(f.from, f.to));
  CHECK(f.got("provisioner") == "one");
  CHECK(std::distance(fs::directory_iterator(f.to), fs::directory_iterator()) == 1);
  fs::remove(f.from + "/provisioner");
  REQUIRE(copy_tokens(f.from, f.to));
  CHECK(fs::is_empty(f.to));
}

TEST_CASE("tokens: one that ends is told a week before, and nothing else") {
  using std::chrono::seconds;
  using std::chrono::sys_seconds;
  Folders f;
  // {"exp":1795529518,"iat":1795529517,"iss":"glidepod"}
  const std::string token =
      "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTU1Mjk1MTgsImlhdCI6MTc5NTUyOTUxNywiaXNzIjoiZ2xpZGVwb2QifQ.c2ln";
  f.put("provisioner", "# from the pool\n" + token + "\n");
  f.put("odd", "a.b.c\na.!!.c\n....\nx");
  f.put("lasting", "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJnbGlkZXBvZCJ9.c2ln");
  const sys_seconds end{seconds(1795529518)};
  auto ends = ends_of_tokens(f.from, end - k_token_notice - seconds(1));
  CHECK(ends.problems.empty());
  CHECK(ends.first == end);
  ends = ends_of_tokens(f.from, end - k_token_notice);
  REQUIRE(ends.problems.size() == 1);
  CHECK(ends.problems[0] ==
        "the token provisioner expires at 2026-11-24T14:11:58Z: its Secret needs another before");
  ends = ends_of_tokens(f.from, end);
  REQUIRE(ends.problems.size() == 1);
  CHECK(ends.problems[0] ==
        "the token provisioner has expired at 2026-11-24T14:11:58Z: its Secret needs another");
  fs::remove(f.from + "/provisioner");
  CHECK_FALSE(ends_of_tokens(f.from, end).first);
  CHECK(ends_of_tokens(f.from + "/none", end).problems.empty());
}

TEST_CASE("tokens: one that is too long is an error, and the others are there all the same") {
  Folders f;
  f.put("a", std::string(100'000, 'x'));
  f.put("b", "token");
  CHECK_FALSE(copy_tokens(f.from, f.to));
  CHECK(f.got("a").empty());
  CHECK(f.got("b") == "token");
  CHECK_FALSE(copy_tokens(f.from + "/none", f.to));
}
