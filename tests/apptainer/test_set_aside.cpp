#include "pilot-agent/apptainer/set_aside.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

struct Sandbox {
  TemporaryFolder folder;
  std::string at(const std::string& name) const { return folder.path + "/" + name; }
  bool has(const std::string& name) const {
    struct stat found {};
    return ::lstat(at(name).c_str(), &found) == 0;
  }
  void fifo(const std::string& name) const { REQUIRE(::mkfifo(at(name).c_str(), 0600) == 0); }
  void link(const std::string& name, const std::string& target) const {
    REQUIRE(::symlink(target.c_str(), at(name).c_str()) == 0);
  }
  void listen(const std::string& name) const {
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(at(name).copy(address.sun_path, sizeof address.sun_path - 1) == at(name).size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
};

}  // namespace

TEST_CASE("set_aside: what cannot be brought back lies in a folder of its own, and is named") {
  const Sandbox sandbox;
  REQUIRE(replace_file(sandbox.at("kept"), "x", 0600, Durable::no).ok());
  REQUIRE(::mkdir(sandbox.at("folder").c_str(), 0700) == 0);
  sandbox.fifo("fifo");
  sandbox.fifo("folder/deep");
  sandbox.listen("socket");
  sandbox.link("zeros", "/dev/zero");
  sandbox.link("to-fifo", "folder/deep");
  sandbox.link("to-kept", "kept");
  sandbox.link("nowhere", "/nonexistent");
  CHECK(set_aside(sandbox.folder.path).names ==
        std::vector<std::string>{"fifo", "socket", "to-fifo", "zeros"});
  for (const auto* name : {"fifo", "socket", "zeros", "to-fifo"}) {
    CAPTURE(name);
    CHECK_FALSE(sandbox.has(name));
    CHECK(sandbox.has(std::string(k_set_aside) + "/" + name));
  }
  for (const auto* name : {"kept", "folder/deep", "to-kept", "nowhere"}) {
    CAPTURE(name);
    CHECK(sandbox.has(name));
  }
  CHECK(set_aside(sandbox.folder.path).count == 0);
}

TEST_CASE("set_aside: nothing is made where there is nothing") {
  const Sandbox sandbox;
  REQUIRE(replace_file(sandbox.at("kept"), "x", 0600, Durable::no).ok());
  sandbox.listen(".docker_sock");  // HTCondor's starter leaves one in each sandbox
  CHECK(set_aside(sandbox.folder.path).count == 0);
  CHECK_FALSE(sandbox.has(k_set_aside));
  CHECK(set_aside("/nonexistent").count == 0);
}

TEST_CASE("set_aside: whatever the job has made of the place, nothing stays and nothing is moved out") {
  const Sandbox elsewhere;
  const Sandbox linked;
  linked.link(k_set_aside, elsewhere.folder.path);
  linked.fifo("fifo");
  CHECK(set_aside(linked.folder.path).count == 1);
  CHECK_FALSE(linked.has("fifo"));
  CHECK_FALSE(elsewhere.has("fifo"));
  const Sandbox file;
  REQUIRE(replace_file(file.at(k_set_aside), "x", 0600, Durable::no).ok());
  file.fifo("fifo");
  CHECK(set_aside(file.folder.path).count == 1);
  CHECK_FALSE(file.has("fifo"));
  const Sandbox filled;
  REQUIRE(::mkdir(filled.at(k_set_aside).c_str(), 0700) == 0);
  REQUIRE(::mkdir(filled.at(std::string(k_set_aside) + "/fifo").c_str(), 0700) == 0);
  filled.fifo("fifo");
  CHECK(set_aside(filled.folder.path).count == 1);
  CHECK_FALSE(filled.has("fifo"));
  const Sandbox closed;
  closed.fifo("fifo");
  REQUIRE(::chmod(closed.folder.path.c_str(), 0500) == 0);
  CHECK(set_aside(closed.folder.path).count == 1);
  CHECK_FALSE(closed.has("fifo"));
}

TEST_CASE("set_aside: a name is one short line") {
  const Sandbox sandbox;
  sandbox.fifo("a\nb");
  sandbox.fifo(std::string(200, 'x'));
  const auto told = set_aside(sandbox.folder.path);
  REQUIRE(told.count == 2);
  for (const auto& name : told.names) {
    CHECK(name.find('\n') == std::string::npos);
    CHECK(name.size() < 100);
  }
}

TEST_CASE("set_aside: thousands are moved and counted, and some named") {
  const Sandbox sandbox;
  for (int i = 0; i < 2001; ++i) sandbox.fifo(std::to_string(10'000 + i));
  const auto told = set_aside(sandbox.folder.path);
  CHECK(told.count == 2001);
  CHECK(told.names.size() == k_most_named);
  CHECK_FALSE(sandbox.has("10000"));
  CHECK_FALSE(sandbox.has("12000"));
  CHECK(set_aside(sandbox.folder.path).count == 0);
}
