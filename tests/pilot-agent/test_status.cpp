#include "pilot-agent/status.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

Snapshot some() {
  Snapshot snapshot;
  auto& running = snapshot.containers.emplace_back();
  running.name = "payload-0";
  running.state = State::running;
  running.job = "12.0";
  running.owner = "alice@pool";
  running.image = "docker.io/library/python:3.12";
  running.slot = "slot1_1@pilot";
  running.how = "warm";
  running.bound_in = std::chrono::microseconds(12345);
  auto& switching = snapshot.containers.emplace_back();
  switching.name = "payload-1";
  switching.state = State::switching;
  switching.job = "13.0";
  switching.wanted = "reg.example/bob/app:1";
  switching.step = "target by goodbye";
  switching.trouble = "Back-off\n\x1b[31m pulling \xff";
  snapshot.waiting = {{"14.0", "bob@pool", "slot1_3@pilot", "reg.example/bob/app:2", false, ""}};
  snapshot.binds.bound("warm", std::chrono::milliseconds(25));
  snapshot.binds.bound("warm", std::chrono::milliseconds(25));
  snapshot.binds.bound("switched", std::chrono::milliseconds(1200));
  snapshot.binds.user = 4;
  snapshot.binds.doubt = 2;
  snapshot.pulls = {{"reg.example/carol/big:1", "pulling", ""}};
  return snapshot;
}

struct Scene {
  TemporaryFolder own;
  const std::string& folder = own.path;
  Loop loop = Loop::create().value();
  Snapshot snapshot = some();
  int looks = 0;

  std::string path() const { return folder + "/status.json"; }
  std::string slots() const { return folder + "/slots.ads"; }
  StatusFile file() {
    return StatusFile(loop, {path(), slots()}, "glidepod/pilot", [this] {
      ++looks;
      return snapshot;
    });
  }
  void pass(int milliseconds) {
    loop.after(Milliseconds(milliseconds), [this] { loop.stop(); });
    REQUIRE(loop.run());
  }
  nlohmann::json read() const { return nlohmann::json::parse(read_file(path()).value()); }
};

}  // namespace

TEST_CASE("status: the file has what the containers do, once for many changes, and for nobody else") {
  Scene scene;
  {
    StatusFile file = scene.file();
    for (int i = 0; i < 50; ++i) file.touch();
    scene.pass(300);
    CHECK(scene.looks == 1);
    struct stat found {};
    REQUIRE(::stat(scene.path().c_str(), &found) == 0);
    CHECK((found.st_mode & 07777) == 0600);
    const auto status = scene.read();
    CHECK(status["pod"] == "glidepod/pilot");
    REQUIRE(status["containers"].size() == 2);
    CHECK(status["containers"][0]["state"] == "running");
    CHECK(status["containers"][1]["wanted"] == "reg.example/bob/app:1");
    CHECK(status["waiting"][0]["job"] == "14.0");
    CHECK(status["containers"][0]["bind_s"] == doctest::Approx(0.012345));
    CHECK_FALSE(status["containers"][1].contains("bind_s"));
    const std::string slots = read_file(scene.slots()).value();
    for (const auto* said :
         {"GlidepodBinds = \"warm=2 fresh=0 switched=1 pulled=0 user=4 infrastructure=0 doubt=2\"\n",
          "GlidepodBindsWithin = \"0.1=2 0.5=2 1=2 2=3 5=3 15=3 60=3 300=3\"\n",
          "GlidepodBindSeconds = 1.250\n"})
      CHECK_MESSAGE(slots.find(said) != std::string::npos, slots);
    // HTCondor's own user reads what goes to the pool.
    REQUIRE(::stat(scene.slots().c_str(), &found) == 0);
    CHECK((found.st_mode & 07777) == 0644);
    CHECK(read_file(scene.slots()).value().find("GlidepodJob = \"12.0\"\n") != std::string::npos);
    CHECK(std::filesystem::directory_iterator(scene.folder) != std::filesystem::directory_iterator());

    SUBCASE("what has not changed is not written again") {
      REQUIRE(::unlink(scene.path().c_str()) == 0);
      file.touch();
      scene.pass(300);
      CHECK(scene.looks == 2);
      CHECK_FALSE(std::filesystem::exists(scene.path()));
    }
    SUBCASE("since is the beginning of a state, not of a change within it") {
      const std::string since = text_of(status["containers"][1], "since");
      scene.snapshot.containers[1].step = "home by status";
      scene.pass(1100);
      file.touch();
      scene.pass(300);
      CHECK(text_of(scene.read()["containers"][1], "since") == since);
      scene.snapshot.containers[1].state = State::idle;
      file.touch();
      scene.pass(300);
      CHECK(text_of(scene.read()["containers"][1], "since") != since);
    }
  }
  CHECK_FALSE(std::filesystem::exists(scene.path()));
  CHECK_FALSE(std::filesystem::exists(scene.slots()));
}

TEST_CASE("status: a job waits since it came, however often it is looked at") {
  Scene scene;
  StatusFile file = scene.file();
  file.touch();
  scene.pass(300);
  const auto since = [&scene] { return text_of(scene.read()["waiting"][0], "since"); };
  const std::string first = since();
  scene.pass(1100);
  scene.snapshot.waiting[0].pulling = true;
  file.touch();
  scene.pass(300);
  CHECK(since() == first);
  const auto away = std::exchange(scene.snapshot.waiting, {});
  file.touch();
  scene.pass(300);
  scene.snapshot.waiting = away;
  file.touch();
  scene.pass(300);
  CHECK(since() != first);
}

TEST_CASE("status: an image in doubt is there until it is tried again, though nothing else happens") {
  Scene scene;
  StatusFile file = scene.file();
  const auto now = std::chrono::steady_clock::now();
  using std::chrono::milliseconds;
  scene.snapshot.doubts = {{"docker://a", now + milliseconds(900)},
                           {"docker://b", now + milliseconds(1500)},
                           {"docker://c", now - milliseconds(1)}};
  file.touch();
  scene.pass(300);
  const auto listed = [&scene] {
    return read_file(scene.slots()).value().find("GlidepodDoubtfulImages = \"docker://a docker://b\"\n") !=
           std::string::npos;
  };
  CHECK(scene.read()["doubts"] == nlohmann::json({"docker://a", "docker://b"}));
  CHECK(listed());
  const auto table = status_table(read_file(scene.path()).value(), {}).value();
  CHECK(table.find("\nimage docker://b: failed on this node, and is not tried again yet\n") !=
        std::string::npos);
  scene.pass(800);
  CHECK(scene.read()["doubts"] == nlohmann::json({"docker://b"}));
  CHECK_FALSE(listed());
  scene.pass(600);
  CHECK(scene.read()["doubts"].empty());
  CHECK(read_file(scene.slots()).value().find("GlidepodDoubtfulImages = undefined\n") != std::string::npos);
}

TEST_CASE("status: a folder that is not there is no reason to fail") {
  Scene scene;
  StatusFile file(scene.loop, {scene.folder + "/nowhere/status.json", ""}, "a/b",
                  [&scene] { return scene.snapshot; });
  file.touch();
  scene.pass(300);
}

TEST_CASE("status: the table") {
  Scene scene;
  StatusFile file = scene.file();
  scene.snapshot.failures = 2;
  scene.snapshot.given_up = true;
  scene.snapshot.shortage = "job 11.0: over its limit";
  file.touch();
  scene.pass(300);
  const auto now = parse_time(text_of(scene.read()["containers"][0], "since")).value();
  const auto table = status_table(read_file(scene.path()).value(), now + std::chrono::seconds(48));
  REQUIRE(table);
  const std::string& text = table.value();
  CHECK(text.find("pod glidepod/pilot, version") == 0);
  CHECK(text.find("\npayload-0  running    48 s   12.0  alice@pool  docker.io/library/python:3.12  -\n") !=
        std::string::npos);
  CHECK(text.find("payload-1  switching  48 s   13.0  -           reg.example/bob/app:1          target by "
                  "goodbye: Back-off\n") != std::string::npos);
  CHECK(text.find("image reg.example/carol/big:1, pulled beside the pod: pulling\n") != std::string::npos);
  CHECK(text.find("waiting for a container: 14.0\n") != std::string::npos);
  CHECK(text.find(
            "failures of the infrastructure in a row: 2\nput on hold for what it used: job 11.0: over its "
            "limit\nthis pilot has given up") != std::string::npos);
  // Names are the users'.
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("status: what is no status is refused") {
  for (const char* text : {"", "{", "[]", "{}", R"({"containers": 5})", R"({"containers": [5]})"})
    CHECK_FALSE(status_table(text, {}).ok());
  CHECK(status_table(R"({"containers": [{}], "waiting": 5, "failures": "x", "given_up": 7})", {}).ok());
}
