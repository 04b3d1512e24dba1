#include "provisioner/backends/lancium.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

LanciumSettings settings(std::string_view text) {
  Ini ini;
  REQUIRE(ini.read(text, "f").ok());
  auto loaded = parse_settings(ini);
  if (!loaded) FAIL(loaded.error().message());
  loaded->settings.lancium.lcli = GLIDEPOD_LCLI_STAND_IN;
  return loaded->settings.lancium;
}

constexpr const char* k_published =
    "[DEFAULT]\napp_name=lancium-wn\n\n[lancium]\nlancium_image=prp-osgvo-pilot-22062218\n"
    "envs_dict=GLIDEIN_Site:Lancium,GLIDEIN_ResourceName:Lancium-PEP,ACCEPT_JOBS_FOR_HOURS:48\n";

// Gives commands a shorter time than settings can say.
class Impatient : public condor::CommandRunner {
 public:
  Impatient(CommandRunner& runner, Milliseconds limit) : runner_(runner), limit_(limit) {}
  void run(condor::Command command, std::function<void(std::string_view)> on_output,
           std::function<void(condor::CommandEnd)> on_end) override {
    command.time_limit = limit_;
    runner_.run(std::move(command), std::move(on_output), std::move(on_end));
  }

 private:
  CommandRunner& runner_;
  Milliseconds limit_;
};

// A Lancium with the stand-in lcli and its own folder.
struct Scene {
  TemporaryFolder own;
  const std::string& folder = own.path;
  Loop loop = Loop::create().value();
  condor::ChildRunner children{loop};
  Impatient runner;
  std::unique_ptr<Lancium> lancium;

  explicit Scene(const char* text = k_published, Milliseconds limit = Milliseconds(30'000))
      : runner(children, limit) {
    ::setenv("LCLI_STATE", folder.c_str(), 1);
    lancium = Lancium::create(runner, settings(text)).value();
  }
  void mode(const std::string& text) const { REQUIRE(replace_file(folder + "/mode", text, 0600).ok()); }
  void set(const char* id, const char* status) {
    auto child = Child::spawn({.argv = {GLIDEPOD_LCLI_STAND_IN, "set", id, status}});
    REQUIRE(child.ok());
    REQUIRE(child->wait().value().status.success());
  }
  std::string create(const Group& shape, const std::string& name) {
    std::string result = "?";
    lancium->create(shape, name, [&](const Result<void>& done) {
      result = done.ok() ? "" : done.error().message();
      loop.stop();
    });
    REQUIRE(loop.run().ok());
    return result;
  }
  std::string remove(const std::string& name) {
    std::string result = "?";
    lancium->remove(name, [&](const Result<void>& done) {
      result = done.ok() ? "" : done.error().message();
      loop.stop();
    });
    REQUIRE(loop.run().ok());
    return result;
  }
  Seen look(Time now = k_now) {
    Seen result;
    lancium->look(now, [&](Seen seen) {
      result = std::move(seen);
      loop.stop();
    });
    REQUIRE(loop.run().ok());
    return result;
  }
};

const Group k_small{.cpus = 16, .memory_mb = 32768};
const Group k_gpu{.cpus = 12, .memory_mb = 24576, .gpus = 4};

std::string refused(const char* text) {
  Loop loop = Loop::create().value();
  condor::ChildRunner runner(loop);
  const auto made = Lancium::create(runner, settings(text));
  return made ? "" : made.error().message();
}

}  // namespace

TEST_CASE("lancium: the published configuration gives PRP's command") {
  const Scene scene;
  CHECK(
      scene.lancium->run_command(k_small, "J") ==
      std::vector<std::string>{
          "job", "run", "--name",
          // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
          "lancium-app:lancium-wn lancium-job:J prp-htcondor-portal:wn PodCPUs:16 PodGPUs:0 PodMemory:32768 "
          "PodDisk:8000000",
          "--command",
          "/usr/local/sbin/supervisord_startup.sh LANCIUM_PROVISIONER_TYPE PRPHTCondorProvisioner "
          "LANCIUM_PROVISIONER_NAME lancium-wn LANCIUM_JOB_NAME J CONDOR_HOST localhost "
          "STARTD_NOCLAIM_SHUTDOWN 1200 "
          "NUM_CPUS 16 NUM_GPUS 0 MEMORY 32768 DISK 8000000 GLIDEIN_Site Lancium GLIDEIN_ResourceName "
          "Lancium-PEP "
          "ACCEPT_JOBS_FOR_HOURS 48",
          "--image", "prp-osgvo-pilot-22062218", "--input-file", "prp-wn.token", "--mem", "32", "--cores",
          "16"});
  const auto gpu = scene.lancium->run_command(k_gpu, "J");
  CHECK(std::vector<std::string>(gpu.end() - 8, gpu.end()) ==
        std::vector<std::string>{"--mem", "24", "--cores", "12", "--gpu-count", "4", "--gpu", "k80"});
}

TEST_CASE("lancium: jobs go to the smallest shape that holds them, or nowhere") {
  const Scene scene;
  const auto shape = [&](const Group& group) {
    Demand demand;
    demand.groups[group] = {.idle = 3, .unmaterialized = 1, .owners = {{"alice", 3}}};
    Capacity capacity;
    const auto fitted = scene.lancium->fit(demand, capacity);
    REQUIRE(fitted.groups.size() == 1);
    CHECK(fitted.groups.begin()->second.idle == 3);
    const auto& first = fitted.groups.begin()->first;
    return capacity.unservable.empty() ? fmt::format("{}/{}", first.cpus, first.gpus)
                                       : capacity.unservable.at(first);
  };
  CHECK(shape({}) == "16/0");
  CHECK(shape({.cpus = 16}) == "16/0");
  CHECK(shape({.cpus = 17}) == "48/0");
  CHECK(shape({.memory_mb = 40'000}) == "48/0");
  CHECK(shape({.gpus = 1}) == "12/4");
  CHECK(shape({.cpus = 13, .gpus = 1}) == "48/16");
  CHECK(shape({.cpus = 49}) == "larger than every shape");
  CHECK(shape({.memory_mb = 100'000}) == "larger than every shape");

  Demand demand;
  demand.groups[{.cpus = 1}] = {.idle = 1, .owners = {{"alice", 1}}};
  demand.groups[{.cpus = 2}] = {.idle = 2, .owners = {{"alice", 1}, {"bob", 1}}};
  Capacity capacity;
  const auto fitted = scene.lancium->fit(demand, capacity);
  CHECK(fitted.groups.begin()->second.owners ==
        std::map<std::string, std::int64_t>{{"alice", 2}, {"bob", 1}});
}

TEST_CASE("lancium: a pilot's life through lcli") {
  Scene scene;
  CHECK(scene.look().pods.empty());
  CHECK(scene.create(k_small, "a") == "");
  CHECK(scene.create(k_gpu, "b") == "");
  auto seen = scene.look();
  CHECK_FALSE(seen.blind);
  CHECK(seen.problems.empty());
  REQUIRE(seen.pods.size() == 2);
  CHECK(seen.pods[0].name == "a");
  CHECK(seen.pods[0].group == k_small);
  CHECK(seen.pods[1].group == k_gpu);
  CHECK(seen.pods[0].state == PodState::unschedulable);
  struct Row {
    const char* status;
    PodState state;
  };
  for (const auto& row : {Row{"submitted", PodState::unschedulable}, Row{"queued", PodState::unschedulable},
                          Row{"running", PodState::unregistered}, Row{"error", PodState::failed},
                          Row{"finished", PodState::succeeded}}) {
    scene.set("1", row.status);
    CHECK(scene.look().pods[0].state == row.state);
  }
  CHECK(scene.remove("a") == "");
  CHECK(scene.look().pods.size() == 1);
  CHECK(scene.remove("b").ends_with("exit code 2: lcli: job 2 is created"));
  CHECK(scene.remove("nobody").ends_with("exit code 2: lcli: no job nobody"));
}

TEST_CASE("lancium: a state's age goes from when it was first seen") {
  Scene scene;
  CHECK(scene.create(k_small, "a") == "");
  CHECK(scene.look(k_now).pods[0].since == k_now);
  CHECK(scene.look(k_now + Seconds(60)).pods[0].since == k_now);
  scene.set("1", "submitted");
  CHECK(scene.look(k_now + Seconds(90)).pods[0].since == k_now);
  scene.set("1", "running");
  CHECK(scene.look(k_now + Seconds(120)).pods[0].since == k_now + Seconds(120));
}

TEST_CASE("lancium: an lcli that fails, hangs, is slow or talks nonsense costs its own time only") {
  Scene scene(k_published, Milliseconds(2000));
  scene.mode("fail not logged in");
  CHECK(scene.look().blind.value().ends_with("exit code 2: lcli:  not logged in"));
  CHECK(scene.create(k_small, "a").ends_with("not logged in"));
  scene.mode("garbage");
  CHECK(scene.look().blind ==
        "lcli's list has no columns id, name and status: '<html>502 Bad Gateway</html>'");
  scene.mode("slow 20");
  CHECK_FALSE(scene.look().blind);
  scene.mode("hang");
  CHECK(scene.look().blind.value().ends_with("no answer in 2000 ms"));
}

TEST_CASE("lancium: values that would break the command line are refused") {
  CHECK(refused(k_published).empty());
  CHECK(refused("[lancium]\nenvs_dict=A:b c\n") ==
        "[lancium] envs_dict: A = 'b c': lcli cannot be given a value with blanks or commas");
  CHECK(refused("[lancium]\nenvs_dict=A:b&comma;c\n").ends_with("with blanks or commas"));
  CHECK(refused("[lancium]\nenvs_dict=A:\n") ==
        "[lancium] envs_dict: A is empty: lcli cannot be given an empty value");
  CHECK(refused("[lancium]\napp_name=my wn\n").starts_with("[lancium] app_name = 'my wn'"));
  CHECK(refused("[lancium]\nadditional_requirements=(a && b)\n")
            .starts_with("[lancium] additional_requirements"));
}

TEST_CASE("lancium: the list is read by its header, rows of others and bad rows cost nothing") {
  std::vector<std::string> problems;
  const auto jobs = parse_lancium_jobs(
      "status,extra,name,id\n"
      "running,x,lancium-app:wn lancium-job:a PodCPUs:16 PodMemory:32768,7\r\n"
      "running,x,\"lancium-app:wn lancium-job:b\",8\n"
      "running,x,lancium-app:wn2 lancium-job:c,9\n"
      "running,x,somebody's, job,10\n"
      "running,x,lancium-app:wn lancium-job:d,y,11\n"
      "running,x,lancium-app:wn lancium-job:e PodCPUs:many,12\n"
      "running,x,lancium-app:wn nothing,13\n",
      "wn", problems);
  REQUIRE(jobs.ok());
  REQUIRE(jobs->size() == 2);
  CHECK((*jobs.operator->())[0].id == "7");
  CHECK((*jobs.operator->())[0].group.cpus == 16);
  CHECK((*jobs.operator->())[1].name == "b");
  CHECK(problems.size() == 3);
  CHECK_FALSE(parse_lancium_jobs("", "wn", problems).ok());
}
