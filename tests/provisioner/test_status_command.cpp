// `provisioner status`, the program.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/http/blocking.hpp"

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
    arguments.insert(arguments.begin(), {PROVISIONER_PROGRAM, "status", "--file", file});
    return run(arguments, false);
  }
  Child run(const std::vector<std::string>& arguments, bool log) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    out = Fd(ends[0]);
    const Fd in(ends[1]);
    return Child::spawn({.argv = arguments,
                         .stdout_fd = log ? -1 : in.get(),
                         .stderr_fd = log ? in.get() : -1,
                         .parent_death_signal = SIGKILL})
        .value();
  }
  // What it says until that is among it.
  std::string read_until(const std::string& part) {
    std::string text;
    pollfd waits{out.get(), POLLIN, 0};
    while (text.find(part) == std::string::npos && ::poll(&waits, 1, 20'000) == 1) {
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

TEST_CASE("status: /status.json and the page are served where that was asked for, and only there") {
  Scene scene;
  const std::string settings = scene.file + ".conf";
  REQUIRE(replace_file(settings, "[glidepod]\nstatus_file=\n[k8s]\nnamespace=n\n", 0600));
  // The second one takes the first one's endpoint for its API, which has no pods: it is blind at once, and
  // that is a status.
  std::string api = "http://[::1]:1";
  std::vector<Child> children;
  for (const bool asked : {false, true}) {
    CAPTURE(asked);
    std::vector<std::string> arguments = {PROVISIONER_PROGRAM, "run",         "--config",  settings,
                                          "--listen",          "127.0.0.1:0", "--api-url", api};
    if (asked) arguments.emplace_back("--serve-status");
    children.push_back(scene.run(arguments, true));
    const auto log = scene.read_until(asked ? "event=cycle" : "event=listening port=");
    const auto at = log.find("port=") + 5;
    REQUIRE(at != std::string::npos + 5);
    const auto end = log.find('\n', at);
    api = "http://127.0.0.1:" + log.substr(at, end - at);
    http::Request request;
    request.url = api + "/status.json";
    const auto answer = http::perform(request);
    REQUIRE(answer);
    CHECK(answer->status == (asked ? 200 : 404));
    CHECK((answer->body.find("\"blind\":\"list of pods") != std::string::npos) == asked);
    for (const auto* path : {"/", "/page.js", "/history/all.json"}) {
      request.url = api + path;
      const auto page = http::perform(request);
      REQUIRE(page);
      CHECK_MESSAGE(page->status == (asked ? 200 : 404), path);
    }
  }
  for (const Child& child : children) REQUIRE(child.signal(SIGTERM));
  for (Child& child : children) CHECK(child.wait().value().status == ExitStatus::exited(0));
  std::filesystem::remove(settings);
}
