// `provisioner status`, the program.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"

using namespace glidepod;

namespace {

struct Scene {
  std::string file = std::filesystem::temp_directory_path() / "provisioner-status.XXXXXX";
  Fd out;

  Scene() { REQUIRE(::mkstemp(file.data()) >= 0); }
  ~Scene() { std::filesystem::remove(file); }
  void write(const std::string& pod) {
    REQUIRE(
        replace_file(file,
                     R"({"time": "T", "unix_time": 9000000000, "blind": "", "submit": 0, "schedds":
      {"asked": 1, "failed": 0}, "decisions": [], "removals": [], "problems": ["\u001b[2J"], "pods": [{"pod": ")" +
                         pod +
                         R"(", "node": "n1", "state": "claimed", "jobs": [{"job": "12.0", "owner": "alice",
      "state": "running", "image": "img:1"}]}]})",
                     0644));
  }
  Child start(std::vector<std::string> arguments) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    out = Fd(ends[0]);
    const Fd in(ends[1]);
    arguments.insert(arguments.begin(), {PROVISIONER_PROGRAM, "status", "--file", file});
    return Child::spawn({.argv = arguments, .stdout_fd = in.get(), .parent_death_signal = SIGKILL}).value();
  }
  // What it says until that is among it.
  std::string read_until(const std::string& part) {
    std::string text;
    pollfd waits{out.get(), POLLIN, 0};
    while (text.find(part) == std::string::npos && ::poll(&waits, 1, 10'000) == 1) {
      char piece[4096];
      const auto got = ::read(out.get(), piece, sizeof piece);
      if (got <= 0) break;
      text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
  }
};

}  // namespace

TEST_CASE("status: the last cycle, then what runs, plain in a pipe") {
  Scene scene;
  scene.write("first");
  Child child = scene.start({});
  const auto text = scene.read_until("img:1  -");
  CHECK(child.wait().value().status == ExitStatus::exited(0));
  CHECK(text.starts_with(
      "T  schedds: 1 asked, 0 failed\n0 pods to make, 0 to remove\nproblem: \\x1b[2J\n\n1 pod: "));
  CHECK(text.find("\nfirst  n1    -          12.0  alice  RUNNING  img:1  -     -\n") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("status: --watch shows each change, and Ctrl-C ends it with success") {
  Scene scene;
  scene.write("first");
  Child child = scene.start({"--watch"});
  CHECK(scene.read_until("first ").find("first ") != std::string::npos);
  scene.write("second");
  CHECK(scene.read_until("second ").find("second ") != std::string::npos);
  REQUIRE(child.signal(SIGINT));
  CHECK(child.wait().value().status == ExitStatus::exited(0));
}

TEST_CASE("status: without a status it fails, also when it watches") {
  Scene scene;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"--watch"}}) {
    std::filesystem::remove(scene.file);
    Child child = scene.start(arguments);
    CHECK(child.wait().value().status == ExitStatus::exited(1));
  }
}
