// Who may connect to the agent and what may be handed to a job, with the real agent, glue and apptainer.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"
#include "tests/pilot-agent/small_cluster.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_image = "docker://reg.example/a:1";

struct Cluster : SmallCluster {
  explicit Cluster(int payloads = 1, std::vector<std::string> settings = {})
      : SmallCluster(payloads, std::move(settings)) {
    registry["reg.example/a"] = "sha256:" + std::string(64, 'a');
    REQUIRE(until([&] { return logged("event=pod"); }));
  }
};

bool not_root() {
  if (::geteuid() == 0) return false;
  MESSAGE("skipped: needs root");
  return true;
}

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("agent: a stream that leads out of the container is refused, and the job held") {
  if (not_root()) return;
  const std::string script = std::filesystem::temp_directory_path() / "hold";
  Cluster c(1, {"HOLD_COMMAND=" + script});
  const std::string sandbox = c.folder() + "/scratch/dir_1", held = c.folder() + "/held";
  {
    const Fd file = open_file(script, O_WRONLY | O_CREAT | O_TRUNC, 0755).value();
    REQUIRE(write_all(file, "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + held + "\nexit 1\n").ok());
  }
  std::filesystem::create_directory(sandbox + "/d");
  std::filesystem::create_symlink("/etc/passwd", sandbox + "/link");
  struct Row {
    std::string in, what;
  };
  for (const Row& row :
       {Row{sandbox + "/d", "/d is a folder"}, Row{"/", "/ is a folder"},
        Row{"/etc/passwd", "/etc/passwd is not in the job's own folder"},
        Row{sandbox + "/link", "/etc/passwd is not in the job's own folder"},
        Row{"/proc/1/status", "is not in the job's own folder"}, Row{"/dev/zero", "/dev/zero is a device"}}) {
    CAPTURE(row.in);
    std::filesystem::remove(held);
    const auto ran = c.run({.image = k_image,
                            .argv = {"/bin/ls", "/proc/self/fd/0/"},
                            .parent = "condor_starter",
                            .in = row.in});
    CHECK(ran.status == ExitStatus::exited(255));
    const std::string told = "the job's standard input (`input`, `+In`) is refused: ";
    CHECK(says(ran.out, told));
    CHECK(says(ran.out, row.what));
    const auto asked = read_file(held);
    REQUIRE(asked.ok());
    CHECK(says(*asked, "\n8\n13\n" + told));
    CHECK(says(*asked, row.what));
  }
  CHECK_FALSE(c.logged("event=started"));
  CHECK(c.run({.image = k_image, .argv = {"/bin/cat"}, .in = sandbox + "/.job.ad"}).status.success());
}

TEST_CASE("agent: whoever is not its own user says no Hello") {
  if (not_root()) return;
  Cluster c;
  REQUIRE(c.until([&] { return c.logged("event=hello"); }));
  const std::string path = c.folder() + "/run/agent.sock";
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  // As if a job had come there all the same.
  REQUIRE((::chmod(path.c_str(), 0666) == 0 && ::chmod((c.folder() + "/run").c_str(), 0755) == 0));
  auto job = Child::fork([&] {
               if (::setgroups(0, nullptr) != 0 || ::setgid(29001) != 0 || ::setuid(29001) != 0) return 99;
               Loop loop = Loop::create().value();
               bool closed = false;
               auto channel = wire::Channel::create(loop, wire::connect_to(path).value(),
                                                    {[](const wire::Frame&) {},
                                                     [&](const Error&) {
                                                       closed = true;
                                                       loop.stop();
                                                     }})
                                  .value();
               wire::Hello hello;
               hello.container = "payload-0";
               (void)channel->send(hello);
               loop.after(Milliseconds(5000), [&] { loop.stop(); });
               (void)loop.run();
               return closed ? 0 : 1;
             }).value();
  REQUIRE(c.until([&] { return c.logged("event=stranger socket=agent uid=29001"); }));
  CHECK(job.wait()->status.success());
  CHECK(c.run({k_image, {"/bin/true"}}).status.success());
}

TEST_CASE("agent: a slot's user has one job at a time") {
  if (not_root()) return;
  Cluster c(3);
  const int first = c.start({k_image, {"/bin/sh", "-c", "exec tail -f /dev/null"}});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  const auto second = c.run({k_image, {"/bin/true"}});
  CHECK(second.status == ExitStatus::exited(125));
  CHECK(says(second.out, "this slot's user still runs another job"));
  // It can have an image tested, and another user has a job.
  CHECK(c.run({.image = k_image, .argv = {}, .verb = "test"}).status.success());
  CHECK(c.run({.image = k_image, .argv = {"/bin/true"}, .owner = "bob@pool", .uid = 29002}).status.success());
  REQUIRE(c.child(first).signal(SIGTERM).ok());
  CHECK(c.wait(first).status == ExitStatus::signaled(SIGTERM));
  CHECK(c.run({k_image, {"/bin/true"}}).status.success());
}

TEST_CASE("agent: a second one in the pod ends with a clear word and changes nothing") {
  if (not_root()) return;
  Cluster c;
  const int job = c.start({k_image, {"/bin/sh", "-c", "exec tail -f /dev/null"}});
  REQUIRE(c.until([&] { return c.logged("event=started"); }));
  const auto second = c.second_agent();
  CHECK(second.status == ExitStatus::exited(1));
  CHECK(says(second.out, "another pilot-agent serves this pod and holds " + c.folder() + "/run/agent.lock"));
  CHECK(read_file(c.folder() + "/termination-log").value().empty());
  CHECK(c.deadline == 0);
  REQUIRE(c.child(job).signal(SIGTERM).ok());
  CHECK(c.wait(job).status == ExitStatus::signaled(SIGTERM));
  CHECK(c.run({k_image, {"/bin/true"}}).status.success());
  // The lock goes with its holder, however that ends.
  c.restart_agent();
  REQUIRE(c.until([&] { return c.logged("restarted=yes"); }));
  CHECK(c.run({k_image, {"/bin/true"}}).status.success());
}
