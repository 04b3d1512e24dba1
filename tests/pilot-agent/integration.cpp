// The real agent, glue and apptainer with a small API server, as root.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"
#include "tests/pilot-agent/small_cluster.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_a = "docker://reg.example/a:1";
const std::string k_b = "docker://reg.example/b:1";
const std::string k_digest_a = "sha256:" + std::string(64, 'a');
const std::string k_digest_b = "sha256:" + std::string(64, 'b');

struct Cluster : SmallCluster {
  explicit Cluster(int payloads = 1, std::vector<std::string> settings = {})
      : SmallCluster(payloads, std::move(settings)) {
    registry["reg.example/a"] = k_digest_a;
    registry["reg.example/b"] = k_digest_b;
    REQUIRE(until([&] { return logged("event=pod"); }));
  }
};

bool not_root() {
  if (::geteuid() == 0) return false;
  MESSAGE("skipped: needs root");
  return true;
}

std::int64_t number_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  REQUIRE(at != std::string::npos);
  return std::stoll(text.substr(at + word.size()));
}

}  // namespace

TEST_CASE("agent: a job's way, switched, warm, fresh and switched again") {
  if (not_root()) return;
  Cluster c;
  auto ran = c.run({k_a, {"/bin/sh", "-c", "echo $IMAGE; id -u; id -G; pwd; exit 7"}});
  CHECK(ran.status == ExitStatus::exited(7));
  CHECK(ran.out == "reg.example/a:1\n29001\n29001 30001\n" + c.folder() + "/scratch/dir_1\n");
  CHECK(c.logged("how=switched"));
  CHECK(c.run({k_a, {"/bin/sh", "-c", "kill -SEGV $$"}}).status == ExitStatus::signaled(SIGSEGV));
  CHECK(c.patches == std::vector<std::string>{"reg.example/a:1"});
  CHECK(c.logged("how=warm"));
  REQUIRE(c.until([&] { return c.logged("event=digest"); }));
  CHECK(c.run({.image = k_a, .argv = {"/bin/true"}, .owner = "bob@pool", .uid = 29002}).status.success());
  CHECK(c.logged("how=fresh"));
  REQUIRE(c.patches.size() == 2);
  CHECK(c.patches[1].starts_with("reg.example/a:g"));
  CHECK(c.patches[1].ends_with("@" + k_digest_a));
  CHECK(c.run({k_b, {"/bin/true"}}).status.success());
  CHECK(c.patches.size() == 3);
  CHECK(c.stop() == ExitStatus::exited(0));
  REQUIRE(
      c.until([&] { return c.glue_ended["payload-0"].has_value() && c.glue_ended["payload-0"]->success(); }));
}

TEST_CASE("agent: test binds, exec finds it ready") {
  if (not_root()) return;
  Cluster c;
  CHECK(c.run({.image = k_a, .argv = {}, .verb = "test"}).status.success());
  CHECK(c.logged("event=prepared job=1.0 owner=alice@pool"));
  CHECK(c.run({k_a, {"/bin/true"}}).status.success());
  CHECK(c.patches.size() == 1);
}

TEST_CASE(
    "agent: where the sandbox's ad is the job's own, a starter says whose the job is, and nobody else") {
  if (not_root()) return;
  Cluster c;
  const auto run = [&](const char* owner, const char* parent, uid_t parent_uid = 0) {
    SmallCluster::Job job{.image = k_a, .argv = {"/bin/true"}, .owner = owner, .parent = parent};
    job.told = true;
    job.parent_uid = parent_uid;
    CHECK(c.run(job).status.success());
  };
  const auto count = [&](const std::string& words) {
    const std::string log = c.log();
    int n = 0;
    for (auto at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) ++n;
    return n;
  };
  run("alice@pool", "condor_starter");
  CHECK(count("event=bound job=1.0 owner=alice@pool") == 1);
  run("alice@pool", "condor_starter");
  CHECK(count("event=prepared job=1.0 owner=alice@pool") == 2);
  CHECK(count("how=warm") == 2);  // of the hook, and of the job
  // Whoever is not a starter, or calls itself one, is nobody.
  run("alice@pool", "bash");
  run("alice@pool", "condor_starter", 29001);
  CHECK(count("owner=alice@pool") == 6);
  CHECK(count("how=warm") == 2);
  CHECK(count("mallory") == 0);
  run("bob@pool", "condor_starter");
  CHECK(count("event=bound job=1.0 owner=bob@pool") == 1);
}

TEST_CASE("agent: a job's image comes while its input files do, and only a starter says so") {
  if (not_root()) return;
  Cluster c;
  SmallCluster::Job job{.image = k_a, .argv = {"/bin/true"}, .parent = "condor_starter"};
  job.files_ms = 1500;
  CHECK(c.run(job).status.success());
  CHECK(c.logged("event=announced container=payload-0 image=reg.example/a:1"));
  CHECK(
      c.logged("event=bound job=1.0 owner=alice@pool image=reg.example/a:1 container=payload-0 how=switched "
               "bind_ms=0."));
  // The ad in the sandbox is the user's own here, and so tells of nobody.
  job.image = k_b;
  job.told = true;
  job.parent = "bash";
  job.files_ms = 100;
  CHECK(c.run(job).status.success());
  CHECK_FALSE(c.logged("event=announced container=payload-0 image=reg.example/b:1"));
  // What is wrong with the image, the job is told itself.
  job.image = "docker://reg.example/nosuch:1";
  job.told = false;
  job.parent = "condor_starter";
  CHECK_FALSE(c.run(job).status.success());
  CHECK(c.logged("event=bind_failed job=1.0 owner=alice@pool image=reg.example/nosuch:1 fault=user"));
}

TEST_CASE("agent: an image that nobody has is the user's fault, and the next job is not its victim") {
  if (not_root()) return;
  Cluster c;
  for (const char* verb : {"test", "exec"}) {
    CAPTURE(verb);
    const auto ran = c.run({.image = "docker://reg.example/nosuch:1", .argv = {"/bin/true"}, .verb = verb});
    CHECK(ran.status.how == ExitStatus::How::exited);
    CHECK(ran.status.number != 0);
    CHECK(ran.status.number != 125);
    CHECK(ran.out.find("not found") != std::string::npos);
    CHECK(c.run({k_b, {"/bin/true"}}).status.success());
  }
  const auto refused = c.run({"/images/x.sif", {"/bin/true"}});
  CHECK(refused.out.find("docker://NAME") != std::string::npos);
}

TEST_CASE("agent: a watch on a dead connection costs seconds, not the bind's whole time") {
  if (not_root()) return;
  Cluster c;
  c.silent = true;
  const auto ran = c.run({.image = "docker://reg.example/nosuch:1", .argv = {}, .verb = "test"});
  CHECK(ran.out.find("not found") != std::string::npos);
  CHECK(ran.ms < 15'000);
  CHECK(c.logged("event=watch_interrupted"));
}

TEST_CASE("agent: a lost container is the job's own end if it ran out of memory") {
  if (not_root()) return;
  Cluster c;
  const int job = c.start({k_a, {"/bin/sh", "-c", "exec tail -f /dev/null"}});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  c.kill_glue(0, "OOMKilled");
  CHECK(c.wait(job).status == ExitStatus::signaled(SIGKILL));
  CHECK(c.run({k_b, {"/bin/true"}}).status.success());
}

TEST_CASE("agent: a lost container is otherwise told to the starter, or to whoever called") {
  if (not_root()) return;
  Cluster c;
  for (const char* parent : {"", "condor_starter"}) {
    CAPTURE(parent);
    const auto started = [&] {
      const std::string log = c.log();
      std::size_t n = 0;
      for (auto at = log.find("event=started"); at != std::string::npos;
           at = log.find("event=started", at + 1))
        ++n;
      return n;
    };
    const auto before = started();
    const int job =
        c.start({.image = k_a, .argv = {"/bin/sh", "-c", "exec tail -f /dev/null"}, .parent = parent});
    REQUIRE(c.until([&] { return started() > before; }));
    c.kill_glue(0, "Error");
    CHECK(c.wait(job).status == ExitStatus::exited(*parent ? 77 : 125));
    CHECK(c.run({k_b, {"/bin/true"}}).status.success());
  }
  CHECK(c.logged("event=vacate"));
}

TEST_CASE("agent: a starter that does not give its job back is killed, and told nothing") {
  if (not_root()) return;
  Cluster c(1, {"VACATE_PATIENCE=1s"});
  const int job = c.start({.image = k_a,
                           .argv = {"/bin/sh", "-c", "exec tail -f /dev/null"},
                           .parent = "condor_starter",
                           .stubborn = true});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  c.kill_glue(0, "Error");
  CHECK(c.wait(job).status == ExitStatus::signaled(SIGKILL));
  CHECK(c.logged("event=starter_killed"));
  CHECK_FALSE(c.logged("event=vacate_failed"));
}

TEST_CASE("agent: killing apptainer kills the job, a signal to it reaches the job") {
  if (not_root()) return;
  Cluster c;
  int job = c.start({k_a, {"/bin/sh", "-c", "trap 'exit 5' USR1; echo on; tail -f /dev/null & wait"}});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  REQUIRE(c.until([&] { return read_file(c.folder() + "/scratch/dir_1/out.1").value() == "on\n"; }));
  REQUIRE(c.child(job).signal(SIGUSR1).ok());
  CHECK(c.wait(job).status == ExitStatus::exited(5));
  CHECK(c.logged("killed=1"));
  job = c.start({k_a, {"/bin/sh", "-c", "echo on; exec tail -f /dev/null"}});
  REQUIRE(c.until([&] { return read_file(c.folder() + "/scratch/dir_1/out.2").value() == "on\n"; }));
  REQUIRE(c.child(job).signal(SIGKILL).ok());
  CHECK(c.wait(job).status == ExitStatus::signaled(SIGKILL));
  REQUIRE(c.until([&] { return c.logged("event=abandoned"); }));
  REQUIRE(c.until([&] { return c.logged("signal 9"); }));
}

TEST_CASE("agent: the API may be down for a while") {
  if (not_root()) return;
  Cluster c;
  c.patch_status = 503;
  const int job = c.start({k_a, {"/bin/true"}});
  REQUIRE(c.until([&] { return c.api_requests >= 3; }));
  c.patch_status = 200;
  CHECK(c.wait(job).status.success());
}

TEST_CASE("agent: another agent takes over what the first one left") {
  if (not_root()) return;
  Cluster c;
  const int job = c.start({k_a, {"/bin/sh", "-c", "exec tail -f /dev/null"}});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  c.restart_agent();
  // Its end is not known, so it is the infrastructure's.
  CHECK(c.wait(job).status == ExitStatus::exited(125));
  CHECK(c.run({k_a, {"/bin/true"}}).status.success());
  CHECK(c.logged("restarted=yes"));
  REQUIRE(c.patches.size() == 3);
  CHECK(c.patches[1].starts_with("reg.example/pilot:g"));
  CHECK(c.patches[2] == "reg.example/a:1");
}

TEST_CASE("agent: a glue of another build, with another protocol, is refused, and the next is not") {
  if (not_root()) return;
  Cluster c;
  wire::Hello hello;
  hello.container = "payload-0";
  --hello.protocol;
  bool closed = false;
  auto glue = wire::Channel::create(c.loop, wire::connect_to(c.folder() + "/run/agent.sock").value(),
                                    {[](const wire::Frame&) {}, [&](const Error&) { closed = true; }})
                  .value();
  REQUIRE(glue->send(hello).ok());
  CHECK(c.until([&] { return closed; }));
  CHECK(c.logged(fmt::format("the caller speaks protocol {}, the pilot's agent {}", wire::k_protocol - 1,
                             wire::k_protocol)));
  CHECK(c.run({k_a, {"/bin/true"}}).status.success());
}

TEST_CASE("agent: root is refused") {
  if (not_root()) return;
  Cluster c;
  const auto ran = c.run({.image = k_a, .argv = {"/bin/true"}, .uid = 0});
  CHECK(ran.out.find("root cannot run") != std::string::npos);
}

TEST_CASE("agent: only HTCondor's own user brings programs along, not the user of a job") {
  if (not_root()) return;
  Cluster c(1, {"TRUSTED_USER=nobody"});
  const auto path = SmallCluster::apptainer();
  const auto slash = path.rfind('/');
  SmallCluster::Job probe{.image = path.substr(0, slash), .argv = {path.substr(slash), "--version"}};
  probe.probe = true;
  probe.uid = 29002;
  auto ran = c.run(probe);
  CHECK(ran.status == ExitStatus::exited(255));
  CHECK(ran.out.find("only user nobody may run a program of an image that is a folder") != std::string::npos);
  CHECK_FALSE(c.logged("how=any"));
  probe.uid = 65534;
  ran = c.run(probe);
  CHECK(ran.status.success());
  CHECK(ran.out.starts_with("apptainer version"));
}

TEST_CASE("agent: it starts its command when a container is ready, and ends with it") {
  if (not_root()) return;
  struct Row {
    const char* command;
    int code;
    const char* message;
    int deadline;  // one that fails ends its pod
  };
  for (const Row& row : {Row{"/bin/true", 0, "true ended with exit code 0\n", 0},
                         Row{"/bin/false", 1, "false ended with exit code 1\n", 1},
                         Row{"/nonexistent -f", 1, "start /nonexistent: No such file or directory\n", 1}}) {
    CAPTURE(row.command);
    SmallCluster c(1, {std::string("COMMAND=") + row.command});
    REQUIRE(c.until([&] { return c.agent_ended.has_value(); }));
    CHECK(*c.agent_ended == ExitStatus::exited(row.code));
    CHECK(read_file(c.folder() + "/termination-log").value() == row.message);
    CHECK(c.deadline == row.deadline);
    REQUIRE(c.until([&] { return c.glue_ended["payload-0"].has_value(); }));
    CHECK(c.glue_ended["payload-0"]->success());
  }
  {
    // It says why in its own words.
    SmallCluster c(1, {"COMMAND=/usr/bin/unlink /nonexistent", "FAILURE_FILE=/proc/sys/kernel/ostype"});
    REQUIRE(c.until([&] { return c.agent_ended.has_value(); }));
    CHECK(read_file(c.folder() + "/termination-log").value() == "Linux\n");
  }
  {
    // Without the API's leave it still ends, and says why.
    SmallCluster c(1, {"COMMAND=/bin/false"});
    c.patch_status = 403;
    REQUIRE(c.until([&] { return c.agent_ended.has_value(); }));
    CHECK(*c.agent_ended == ExitStatus::exited(1));
    CHECK(c.deadline == 0);
    CHECK(c.logged("event=pod_not_failed"));
  }
  SmallCluster c(1, {"COMMAND=/usr/bin/tail -f /dev/null"});
  REQUIRE(c.until([&] { return c.logged("event=command_started"); }));
  CHECK(c.stop() == ExitStatus::exited(0));
  CHECK(read_file(c.folder() + "/termination-log").value() == "the pilot was told to end by signal 15\n");
}

TEST_CASE("agent: in a pod whose containers never come again it ends at once, and says so") {
  if (not_root()) return;
  SmallCluster c(1, {"COMMAND=/usr/bin/tail -f /dev/null"});
  c.restart_policy = "Never";
  REQUIRE(c.until([&] { return c.agent_ended.has_value(); }));
  CHECK(*c.agent_ended == ExitStatus::exited(1));
  CHECK(c.deadline == 1);
  CHECK_FALSE(c.logged("event=command_started"));
  CHECK(c.patches.empty());
  CHECK(c.logged("event=failed"));
  CHECK(read_file(c.folder() + "/termination-log").value().starts_with("this pod's restartPolicy is Never"));
}

TEST_CASE("agent: a pod that an operator drains ends after its last job, well, and takes no other") {
  if (not_root()) return;
  const std::string told = "/mnt/tmp";  // of these tests alone (small_cluster.cpp)
  // Its HTCondor: what is told to it, and how it ends, does not matter to the pod's end.
  SmallCluster c(2, {"COMMAND=/usr/bin/env --ignore-signal=HUP /usr/bin/tail -f /dev/null",
                     "DRAINED_FILE=" + told + "/drained", "TROUBLE_CONFIG=" + told + "/config"});
  c.registry["reg.example/a"] = k_digest_a;
  REQUIRE(c.until([&] { return c.logged("event=command_started"); }));
  const int job =
      c.start({k_a, {"/bin/sh", "-c", "while [ ! -e " + told + "/end ]; do sleep 0.05; done; exit 7"}});
  REQUIRE(c.until([&] { return c.logged("event=bound"); }));
  REQUIRE(replace_file(told + "/drained", "new \"disks\"", 0644).ok());
  REQUIRE(c.until([&] { return c.logged("event=drained"); }));
  CHECK(read_file(told + "/config").value() ==
        "START = False\nGlidepodDrained = \"new 'disks'\"\nSTARTD_ATTRS = $(STARTD_ATTRS) GlidepodDrained\n");
  const auto late = c.run({.image = k_a, .argv = {"/bin/true"}, .uid = 29002});
  CHECK(late.status == ExitStatus::exited(125));
  CHECK(late.out.find("an operator has drained it") != std::string::npos);
  CHECK(!c.agent_ended);
  REQUIRE(replace_file(told + "/end", "", 0644).ok());
  CHECK(c.wait(job).status == ExitStatus::exited(7));
  REQUIRE(c.until([&] { return c.agent_ended.has_value(); }));
  CHECK(*c.agent_ended == ExitStatus::exited(0));
  CHECK(c.deadline == 0);
  CHECK(read_file(c.folder() + "/termination-log").value() == "drained by an operator: new \"disks\"\n");
  for (const auto* name : {"payload-0", "payload-1"})
    REQUIRE(c.until([&] { return c.glue_ended[name].has_value() && c.glue_ended[name]->success(); }));
}

TEST_CASE("agent: a job whose image is being made hears of signals, and of a pilot that takes no more") {
  if (not_root()) return;
  const std::string told = "/mnt/tmp";
  SmallCluster c(2, {"COMMAND=/usr/bin/env --ignore-signal=HUP /usr/bin/tail -f /dev/null",
                     "DRAINED_FILE=" + told + "/of-store", "TROUBLE_CONFIG=" + told + "/config",
                     "IMAGE_STORE=" + told + "/store", "IMAGE_STORE_REPOSITORY=reg.example/files"});
  const Fd store = wire::listen_at(told + "/store", 0600).value();  // which never answers
  std::vector<Fd> questions;
  REQUIRE(c.loop.watch(store.get(), EPOLLIN, [&](std::uint32_t) {
    questions.push_back(std::move(wire::accept_from(store).value()));
  }));
  REQUIRE(c.until([&] { return c.logged("event=command_started"); }));
  c.registry["reg.example/a"] = k_digest_a;
  const int running = c.start({.image = k_a, .argv = {"/bin/sleep", "60"}, .uid = 29002});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  const SmallCluster::Job job{.image = "./app.sif", .argv = {"/bin/true"}};
  const auto file = c.folder() + "/scratch/dir_1/app.sif";
  REQUIRE(replace_file(file, "content", 0644));
  REQUIRE(::chown(file.c_str(), job.uid, job.uid) == 0);
  for (const int number : {SIGUSR1, SIGTERM}) {
    const auto asked = questions.size() + 1;
    const int waits = c.start(job);
    REQUIRE(c.until([&] { return questions.size() == asked; }));
    REQUIRE(c.child(waits).signal(number).ok());
    CHECK(c.wait(waits).status == ExitStatus::signaled(number));
  }
  const int waits = c.start(job);
  REQUIRE(c.until([&] { return questions.size() == 3; }));
  REQUIRE(replace_file(told + "/of-store", "new disks", 0644));
  const auto refused = c.wait(waits);
  CHECK(refused.status == ExitStatus::exited(125));
  CHECK(refused.out.find("an operator has drained it") != std::string::npos);
  // Nor is an image made for what comes later.
  CHECK(c.run(job).out.find("an operator has drained it") != std::string::npos);
  CHECK(questions.size() == 3);
  REQUIRE(c.child(running).signal(SIGKILL).ok());
  c.loop.forget(store.get());
}

TEST_CASE("agent: warm binds are fast, an idle agent does nothing at all and is small") {
  if (not_root()) return;
  Cluster c;
  REQUIRE(c.run({k_a, {"/bin/true"}}).status.success());
  REQUIRE(c.until([&] { return c.logged("event=digest"); }));
  std::vector<double> times;
  times.reserve(50);
  for (int i = 0; i < 50; ++i) times.push_back(c.run({k_a, {"/bin/true"}}).ms);
  std::ranges::sort(times);
  double bind = 0;
  std::istringstream lines(c.log());
  for (std::string line; std::getline(lines, line);)
    if (line.find("how=warm") != std::string::npos)
      bind = std::max(bind, std::stod(line.substr(line.find("bind_ms=") + 8)));
  const auto proc = fmt::format("/proc/{}/", c.agent_pid());
  const auto switches = [&] {
    return number_after(read_file(proc + "status").value(), "\nvoluntary_ctxt_switches:");
  };
  const int requests = c.api_requests;
  c.idle(Milliseconds(100));
  const auto before = switches();
  c.idle(Milliseconds(1500));
  const auto after = switches();
  CHECK(after == before);
  CHECK(c.api_requests == requests);
  const std::string memory = read_file(proc + "smaps_rollup").value();
  const auto kib = number_after(memory, "Private_Dirty:") + number_after(memory, "Private_Clean:");
  CHECK(kib < 12 * 1024);
  MESSAGE(fmt::format(
      "warm exec of /bin/true: median {:.2f} ms; longest bind {:.1f} ms; private memory {} KiB; wake-ups "
      "in 1.5 s idle: {}",
      times[times.size() / 2], bind, kib, after - before));
}

TEST_CASE("agent: the command is told the jobs at a time, which spare containers are not among") {
  if (not_root()) return;
  const std::string told = "/mnt/tmp/environ";  // of these tests alone (small_cluster.cpp)
  const auto jobs = [&told](const char* setting, bool old) {
    SmallCluster c(3, {"COMMAND=/usr/bin/cp /proc/self/environ " + told, setting});
    REQUIRE(c.until([&] { return c.logged("event=command_started"); }));
    REQUIRE(c.until([&] { return c.agent_ended.has_value(); }));
    CHECK(c.logged("event=old_setting name=spares now=warm value=1") == old);
    const auto all = split(read_file(told).value(), '\0');
    const auto found = std::ranges::find_if(
        all, [](const auto& one) { return one.starts_with("GLIDEPOD_PAYLOAD_CONTAINERS="); });
    return found == all.end() ? std::string() : found->substr(found->find('=') + 1);
  };
  CHECK(jobs("WARM=auto", false) == "3");
  CHECK(jobs("WARM=2", false) == "1");
  CHECK(jobs("WARM=9", false) == "1");
  CHECK(jobs("SPARES=1", true) == "2");
}
