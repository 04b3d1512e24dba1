#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/apptainer/small_agent.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;
using Strings = std::vector<std::string>;

namespace {

struct stat status_of(const Fd& fd) {
  struct stat found {};
  REQUIRE(::fstat(fd.get(), &found) == 0);
  return found;
}

}  // namespace

TEST_CASE("apptainer: the job's streams are its own, not copies") {
  SmallAgent agent;
  Pipe input;
  REQUIRE(write_all(input.writer, "in").ok());
  agent.start({.stdin_fd = input.reader.get()});
  agent.bind();
  REQUIRE(agent.fds().size() == 3);
  CHECK(status_of(agent.fds()[0]).st_ino == status_of(input.reader).st_ino);
  char bytes[2];
  CHECK(::read(agent.fds()[0].get(), bytes, 2) == 2);
  REQUIRE(write_all(agent.fds()[1], "out").ok());
  REQUIRE(write_all(agent.fds()[2], "err").ok());
  agent.answer(ExitStatus::exited(0));
  const auto ran = agent.ran();
  CHECK(ran.out == "out");
  CHECK(ran.err == "err");
}

TEST_CASE("apptainer: a closed stream becomes /dev/null, and nothing else takes its place") {
  struct stat null {};
  REQUIRE(::stat("/dev/null", &null) == 0);
  for (const std::vector<int>& closed : {std::vector{0}, {1}, {2}, {0, 1, 2}}) {
    SmallAgent agent;
    agent.start({.in_child = [&] {
      for (const int fd : closed) ::close(fd);
    }});
    agent.bind();
    REQUIRE(agent.fds().size() == 3);
    for (const int fd : closed) CHECK(status_of(agent.fds()[fd]).st_rdev == null.st_rdev);
    agent.answer(ExitStatus::exited(7));
    CHECK(agent.ran().status == ExitStatus::exited(7));
  }
}

TEST_CASE("apptainer: arguments and environment of megabytes arrive whole") {
  SmallAgent agent;
  Strings arguments{"exec", "-C", "docker://image"};
  for (char c = 'a'; c < 'a' + 21; ++c) arguments.push_back(std::string(100000, c));
  Strings environment;
  for (char c = 'a'; c < 'a' + 5; ++c)
    environment.push_back(std::string("APPTAINERENV_") + c + "=" + std::string(100000, c));
  agent.start({.arguments = arguments, .environment = environment, .in_child = [] {
                 // The kernel takes a quarter of the stack's limit for them.
                 const rlimit stack{64 << 20, RLIM_INFINITY};
                 ::setrlimit(RLIMIT_STACK, &stack);
               }});
  const wire::Bind& bind = agent.bind();
  CHECK((bind.argv == Strings(arguments.begin() + 3, arguments.end())));
  CHECK(std::count_if(bind.environment.begin(), bind.environment.end(),
                      [](const std::string& variable) { return variable.size() == 100002; }) == 5);
  agent.answer(ExitStatus::exited(0));
  CHECK(agent.ran().status.success());
}

TEST_CASE("apptainer: the agent learns what the caller is") {
  SmallAgent agent;
  // Where another user reaches it, wherever this tree lies.
  const std::string program = agent.folder() + "/apptainer";
  std::filesystem::copy_file(APPTAINER_PROGRAM, program);
  agent.start({.program = program, .in_child = [] {
                 ::umask(027);
                 const rlimit core{4096, 8192};
                 ::setrlimit(RLIMIT_CORE, &core);
                 if (::chdir("/usr") != 0) ::_exit(112);
                 if (::getuid() == 0) {
                   const gid_t groups[] = {30001};
                   if (::setgroups(1, groups) != 0 || ::setgid(20001) != 0 || ::setuid(20001) != 0)
                     ::_exit(113);
                 }
               }});
  const wire::Bind& bind = agent.bind();
  CHECK(bind.umask == 027);
  CHECK(bind.cwd == "/usr");
  CHECK(bind.limits[RLIMIT_CORE].soft == 4096);
  CHECK(bind.limits[RLIMIT_CORE].hard == 8192);
  CHECK(agent.peer().pid == agent.child().pid());
  if (::getuid() == 0) {
    CHECK(agent.peer().uid == 20001);
    CHECK(agent.peer().gid == 20001);
    CHECK(agent.peer().groups == std::vector<gid_t>{30001});
  }
  agent.answer(ExitStatus::exited(0));
  CHECK(agent.ran().status.success());
}

TEST_CASE("apptainer: HTCondor's probe of a directory hands over a program that runs anywhere") {
  SmallAgent agent;
  const std::filesystem::path program = APPTAINER_PROGRAM;  // a static program at hand
  agent.start(
      {.arguments = {"exec", "-C", program.parent_path(), "/" + program.filename().string(), "--version"}});
  const wire::Bind& bind = agent.bind();
  CHECK(bind.program_attached);
  REQUIRE(agent.fds().size() == 4);
  auto child = Child::fork([&] {
                 ::dup2(agent.fds()[1].get(), STDOUT_FILENO);
                 char name[] = "x", option[] = "--version";
                 char* const argv[] = {name, option, nullptr};
                 ::fexecve(agent.fds()[3].get(), argv, environ);
                 return 114;
               }).value();
  agent.answer(child.wait()->status);
  const auto ran = agent.ran();
  CHECK(ran.status.success());
  CHECK(ran.out.starts_with("apptainer version "));
}

TEST_CASE("apptainer: called as singularity it is the same") {
  SmallAgent agent;
  const std::string link = agent.folder() + "/singularity";
  std::filesystem::create_symlink(APPTAINER_PROGRAM, link);
  CHECK(agent.run({.program = link}, ExitStatus::exited(37)).status == ExitStatus::exited(37));
}

TEST_CASE("apptainer: as it is shipped, no variable says where the agent is: the job chooses them") {
  SmallAgent agent;
  agent.start({.arguments = {"test", "docker://image"},
               .environment = {"GLIDEPOD_EXEC_SOCKET=" + agent.socket(), "TEST_EXEC_SOCKET=" + agent.socket(),
                               "GLIDEPOD_STAY_MS=600000", "TEST_STAY_MS=600000"},
               .program = SHIPPED_APPTAINER});
  const auto ran = agent.ran();
  CHECK(ran.status == ExitStatus::exited(125));
  CHECK(ran.out.find("/run/glidepod/exec.sock") != std::string::npos);
  CHECK_FALSE(agent.was_called());
}

TEST_CASE("check-job: tells the agent the job's image, and the job does not wait for what comes of it") {
  SmallAgent agent;
  const auto start = [&](const std::string& ad) {
    Pipe input;
    REQUIRE(write_all(input.writer, ad).ok());
    input.writer.reset();
    agent.start({.name = "check-job", .stdin_fd = input.reader.get()});
  };
  const std::string ad = "JobUniverse = 5\nOwner = \"alice\"\nClusterId = 1\nProcId = 0\n";
  for (const bool good : {true, false}) {
    start(ad + "ContainerImage = \"docker://reg.example/a:1\"\n");
    const wire::Bind bind = agent.bind();
    CHECK(bind.verb == wire::Verb::announce);
    CHECK(bind.image == "docker://reg.example/a:1");
    CHECK(bind.job_ad.find("ClusterId = 1\n") != std::string::npos);
    if (good)
      agent.answer(ExitStatus::exited(0));
    else
      agent.fail(wire::Fault::user, "no");
    const auto ran = agent.ran();
    CHECK(ran.status == ExitStatus::exited(0));
    CHECK(ran.out.empty());
  }
  // What may not run is held before anybody is told, and an image that is no string is for prepare-job.
  start(ad + "ContainerImage = \"docker://reg.example/a:1\"\nPreCmd = \"/bin/sh\"\n");
  CHECK(agent.ran().out.find("HookStatusCode = 1\n") != std::string::npos);
  start(ad + "ContainerImage = strcat(\"docker://\", \"reg.example/a:1\")\n");
  CHECK(agent.ran().out.empty());
  CHECK_FALSE(agent.was_called());
  // Without an agent the job goes on, to be told by prepare-job.
  agent.stop_listening();
  start(ad + "ContainerImage = \"docker://reg.example/a:1\"\n");
  const auto ran = agent.ran();
  CHECK(ran.status == ExitStatus::exited(0));
  CHECK(ran.out.empty());
}
