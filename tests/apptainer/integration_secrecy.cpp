#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/apptainer/small_agent.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

constexpr uid_t k_slot_user = 20001;

void become_slot_user() {
  if (::setgroups(0, nullptr) != 0 || ::setgid(k_slot_user) != 0 || ::setuid(k_slot_user) != 0) ::_exit(113);
}

// What a process of the slot's user gets at in another one: a bit each for its environment, its root
// directory, its memory, and being its tracer.
int secrets_of(pid_t pid) {
  auto child = Child::fork([&] {
                 become_slot_user();
                 const std::string proc = "/proc/" + std::to_string(pid);
                 int got = 0;
                 got |= ::open((proc + "/environ").c_str(), O_RDONLY) >= 0 ? 1 : 0;
                 got |= ::open((proc + "/root/etc").c_str(), O_RDONLY | O_DIRECTORY) >= 0 ? 2 : 0;
                 got |= ::open((proc + "/mem").c_str(), O_RDONLY) >= 0 ? 4 : 0;
                 got |= ::ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 ? 8 : 0;
                 return got;
               }).value();
  return child.wait()->status.number;
}

}  // namespace

TEST_CASE("apptainer: another process of the same user learns nothing of it and cannot trace it") {
  if (::getuid() != 0) {
    MESSAGE("skipped: needs root, to be two processes of another user");
    return;
  }
  SmallAgent agent;
  const std::string program = agent.folder() + "/apptainer";
  std::filesystem::copy_file(APPTAINER_PROGRAM, program);

  SUBCASE("as it is installed, execute-only") {
    REQUIRE(::chmod(program.c_str(), 0711) == 0);
  }
  SUBCASE("even if it could be read") {
    REQUIRE(::chmod(program.c_str(), 0755) == 0);
  }
  agent.start({.environment = {"APPTAINERENV_SECRET=1"}, .program = program, .in_child = become_slot_user});
  agent.bind();
  CHECK(secrets_of(agent.child().pid()) == 0);
  agent.answer(ExitStatus::exited(0));
  CHECK(agent.ran().status.success());
}

TEST_CASE("apptainer: an execute-only program is closed from its first instruction on") {
  if (::getuid() != 0) {
    MESSAGE("skipped: needs root, to be two processes of another user");
    return;
  }
  // A program that does nothing about it: only its mode differs.
  SmallAgent agent;
  const std::string program = agent.folder() + "/sleep";
  std::filesystem::copy_file("/bin/sleep", program);
  for (const auto& [mode, expected] : {std::pair(0755U, 15), std::pair(0711U, 0)}) {
    REQUIRE(::chmod(program.c_str(), mode) == 0);
    Pipe started;
    auto child = Child::fork([&] {
                   become_slot_user();
                   ::execl(program.c_str(), "sleep", "60", nullptr);
                   return 111;
                 }).value();
    started.writer.reset();
    // The child's copy of the writing end closes at its exec.
    CHECK(read_all(started.reader, "pipe", 1)->empty());
    CHECK(secrets_of(child.pid()) == expected);
    REQUIRE(child.signal(SIGKILL).ok());
    CHECK(child.wait()->status == ExitStatus::signaled(SIGKILL));
  }
}
