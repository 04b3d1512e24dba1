// Launches that fail: who is told what, and that glue is ready for the next one.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "tests/glue/elf.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {
void put(const std::string& path, const std::string& text, unsigned mode) {
  REQUIRE(replace_file(path, text, mode).ok());
}
}  // namespace

TEST_CASE("failure: a program that cannot be executed is the user's fault, and named") {
  Session session;
  ::mkdir("/opt", 0755);
  put("/opt/some-data", "only text", 0644);
  put("/opt/other-machine",
      std::string("\x7f"
                  "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\xb7\0",
                  20),
      0755);
  // Its loader's name is beyond its end, of which the kernel says that it is an I/O error.
  put("/opt/cut", elf_with_loader("", 1 << 20, 10), 0755);
  put("/opt/cut-script", "#!/opt/cut\n", 0755);
  put("/opt/cut-closed", elf_with_loader("", 1 << 20, 10), 0711);
  put("/opt/unreadable", "echo no first line\n", 0711);
  put("/opt/a-script", "#!/no/such/interpreter\n", 0755);
  put("/opt/of-windows", "#! /bin/sh\r\n", 0755);
  put("/opt/long", "#!/" + std::string(100, 'x') + "/" + std::string(100, 'y') + " -e\n", 0755);
  put("/opt/secret", "#!/bin/sh\n", 0700);
  struct Case {
    const char* program;
    const char* message;
  };
  for (const auto& [program, message] :
       {Case{"/bin/foo",
             "cannot execute /bin/foo: No such file or directory (is it in the image? for a script: is its "
             "interpreter?)"},
        Case{"no-such-program",
             "cannot execute no-such-program in any folder of PATH: No such file or directory"},
        Case{"/opt/some-data", "cannot execute /opt/some-data: Permission denied (is it executable"},
        Case{"/opt/secret", "cannot execute /opt/secret: Permission denied"},
        Case{"/opt/other-machine", "cannot execute /opt/other-machine: Exec format error"},
        Case{"other-machine", "cannot execute /opt/other-machine: Exec format error"},
        Case{"/opt/cut", "cannot execute /opt/cut: Exec format error (is it whole"},
        Case{"/opt/cut-script", "cannot execute /opt/cut-script: Exec format error"},
        Case{"/opt/cut-closed", "cannot execute /opt/cut-closed: Exec format error"},
        Case{"/opt/unreadable", "cannot execute /opt/unreadable: Exec format error"},
        Case{"/opt/a-script",
             "cannot execute /opt/a-script: No such file or directory (its interpreter /no/such/interpreter "
             "is not "
             "in the image)"},
        Case{"a-script",
             "cannot execute /opt/a-script: No such file or directory (its interpreter /no/such/interpreter "
             "is not "
             "in the image)"},
        Case{"/opt/of-windows",
             "cannot execute /opt/of-windows: No such file or directory (its first line ends as on Windows, "
             "so its interpreter is \"/bin/sh\\r\")"},
        Case{"/opt/long", "cannot execute /opt/long: No such file or directory (its interpreter /xxx"},
        Case{"some-data", "cannot execute /opt/some-data: Permission denied"},
        Case{"/opt/some-data/x", "cannot execute /opt/some-data/x: Not a directory"},
        Case{"/opt", "cannot execute /opt: Permission denied"}, Case{"", "cannot execute "}}) {
    auto launch = launch_of({program});
    launch.environment = {"PATH=/sbin:/bin:/opt"};
    const auto failed = session.agent.fail(launch);
    CHECK(failed.fault == wire::Fault::user);
    INFO(failed.message);
    CHECK(failed.message.starts_with(message));
  }
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
}

TEST_CASE("launch: the image's shell runs a script without a first line, as its user and nothing more") {
  Session session;
  ::mkdir("/opt", 0755);
  put("/opt/plain", "echo \"$0 $# $2\"\ngrep -E '^(Uid|NoNewPrivs|CapEff)' /proc/$$/status\nexit ${3:-0}\n",
      0755);
  put("/opt/raised", "id -u\n", 06755);
  put("/opt/empty", "", 0755);
  put("/opt/late-nul", std::string("echo text; exit\n\0\1", 18), 0755);
  const auto by_path = [](std::string program) {
    auto launch = launch_of({std::move(program), "a b", "c"});
    launch.environment = {"PATH=/bin:/opt"};
    return launch;
  };
  const std::string expected =
      "/opt/plain 2 c\nUid:\t29999\t29999\t29999\t29999\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n";
  CHECK(session.output_of(by_path("/opt/plain")) == expected);
  CHECK(session.output_of(by_path("plain")) == expected);
  CHECK(session.agent.run({"/opt/plain", "a", "b", "7"}).status == ExitStatus::exited(7));
  CHECK(session.output_of(by_path("raised")) == "29999\n");
  CHECK(session.output_of(by_path("late-nul")) == "text\n");
  CHECK(session.agent.run(by_path("empty")).status == ExitStatus::exited(0));
}

TEST_CASE("failure: PATH is the job's own, and a folder closed to it hides nothing") {
  Session session;
  ::mkdir("/opt", 0755);
  ::mkdir("/opt/closed", 0700);
  ::mkdir("/opt/open", 0755);
  put("/opt/closed/tool", "#!/bin/sh\necho closed\n", 0755);
  put("/opt/open/tool", "#!/bin/sh\necho open\n", 0755);
  auto launch = launch_of({"tool"});
  launch.environment = {"PATH=/opt/closed:/opt/open:/bin"};
  CHECK(session.output_of(launch) == "open\n");
  launch = launch_of({"no-such-tool"});
  launch.environment = {"PATH=/opt/closed:/bin"};
  const auto message = session.agent.fail(launch).message;
  CHECK(message.starts_with("cannot execute no-such-tool in any folder of PATH: No such file or directory"));
}

TEST_CASE("failure: a working directory is the user's fault in the image, not in the scratch") {
  Session session;
  auto launch = launch_of({"/job", "exit", "0"});
  launch.cwd = "/not/there";
  auto failed = session.agent.fail(launch);
  CHECK(failed.fault == wire::Fault::user);
  CHECK(
      failed.message ==
      "cannot enter the job's working directory /not/there: No such file or directory (is it in the image?)");
  launch.cwd = "/glidepod/scratch/dir_gone";
  failed = session.agent.fail(launch);
  CHECK(failed.fault == wire::Fault::infrastructure);
}

TEST_CASE("failure: a folder of the image that is closed to its users is the user's to mend") {
  Session session;
  auto launch = launch_of({"/job", "exit", "0"});
  launch.cwd = k_sandbox;
  REQUIRE(::chmod("/", 0700) == 0);
  auto failed = session.agent.fail(launch);
  REQUIRE(::chmod("/", 0755) == 0);
  CHECK(failed.fault == wire::Fault::user);
  CHECK(failed.message.ends_with("Permission denied (the image's folder / is closed to its users)"));
  ::mkdir("/closed", 0700);
  launch.cwd = "/closed/work";
  launch.links = {{"/closed/work", k_sandbox}};
  failed = session.agent.fail(launch);
  CHECK(failed.fault == wire::Fault::user);
  CHECK(failed.message.ends_with("(the image's folder /closed is closed to its users)"));
  REQUIRE(::chmod("/closed", 0755) == 0);
  CHECK(session.agent.run(launch).clean);
  // The sandbox itself is HTCondor's.
  launch = launch_of({"/job", "exit", "0"});
  launch.cwd = "/glidepod/scratch/closed";
  REQUIRE(::mkdir(launch.cwd.c_str(), 0700) == 0);
  CHECK(session.agent.fail(launch).fault == wire::Fault::infrastructure);
}

TEST_CASE("failure: no launch as root, in root's group, or without sense") {
  Session session;
  const auto refused = [&](auto change) {
    auto launch = launch_of({"/job", "exit", "0"});
    change(launch);
    return session.agent.fail(launch).fault == wire::Fault::infrastructure;
  };
  CHECK(refused([](wire::Launch& launch) { launch.uid = 0; }));
  CHECK(refused([](wire::Launch& launch) { launch.gid = 0; }));
  CHECK(refused([](wire::Launch& launch) { launch.groups.push_back(0); }));
  CHECK(refused([](wire::Launch& launch) { launch.uid = ~0U; }));
  CHECK(refused([](wire::Launch& launch) { launch.argv.clear(); }));
  CHECK(refused([](wire::Launch& launch) { launch.argv = {std::string("a\0b", 3)}; }));
  CHECK(refused([](wire::Launch& launch) { launch.cwd = "here"; }));
  CHECK(refused([](wire::Launch& launch) { launch.limits = {{99, 1, 1}}; }));
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
}

TEST_CASE("failure: a job stopped by its own limits is told from a missing program") {
  Session session;
  auto launch = launch_of({"/bin/sh", "-c", "echo alive"});
  launch.limits = {{RLIMIT_NPROC, 100, 100}, {RLIMIT_FSIZE, 0, 0}, {RLIMIT_NOFILE, 3, 3}};
  // It starts; what it then may not write is its own affair.
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  CHECK(session.agent.expect<wire::JobEnded>().clean);
}
