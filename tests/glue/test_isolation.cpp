// What a job finds itself to be, and what it cannot reach.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {
// The words after "NAME:" in /proc/self/status.
std::string field(const std::string& status, const std::string& name) {
  for (const auto& line : split(status, '\n'))
    if (line.starts_with(name + ":")) return std::string(trim(line.substr(name.size() + 1)));
  return "absent";
}
}  // namespace

TEST_CASE("job: runs as its user with exactly its groups, without any privilege") {
  Session session;
  auto launch = launch_of({"cat", "/proc/self/status"});
  launch.groups = {k_tracking_group, 5, 60000};
  const std::string status = session.output_of(launch);
  CHECK(field(status, "Uid") == "29999\t29999\t29999\t29999");
  CHECK(field(status, "Gid") == "29999\t29999\t29999\t29999");
  CHECK(field(status, "Groups") == "5 30001 60000");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    CHECK(field(status, set) == "0000000000000000");
  CHECK(field(status, "NoNewPrivs") == "1");
  CHECK(field(status, "Seccomp") == "2");
  CHECK(field(status, "SigBlk") == "0000000000000000");
  CHECK(field(status, "SigIgn") == "0000000000000000");
  launch = launch_of({"cat", "/proc/self/status"});
  launch.groups = {};
  CHECK(field(session.output_of(launch), "Groups") == "");
}

TEST_CASE("job: has its working directory, umask, session, limits and three descriptors") {
  Session session;
  auto launch =
      launch_of(shell("pwd; umask; echo $$; cut -d' ' -f6 /proc/$$/stat; ulimit -n; ulimit -Hn; "
                      "ulimit -c; cat /proc/self/oom_score_adj; exec /job descriptors"));
  launch.umask = 027;
  launch.limits = {{RLIMIT_NOFILE, 100, 200}, {RLIMIT_CORE, 0, 1ULL << 62}};
  const auto lines = split(session.output_of(launch), '\n');
  REQUIRE(lines.size() == 9);
  CHECK(lines[0] == k_sandbox);
  CHECK(lines[1] == "0027");
  CHECK(lines[2] == lines[3]);
  CHECK(lines[4] == "100");
  CHECK(lines[5] == "200");
  CHECK(lines[6] == "0");
  CHECK(parse_integer(lines[7]).value() >= 100);
  CHECK(lines[8] == "0 1 2 ");
}

TEST_CASE("job: gets the image's environment under its own, without Kubernetes' and Glidepod's") {
  Session session({.environment = {"FOO_SERVICE_HOST=10.0.0.9", "FOO_SERVICE_PORT=80",
                                   "FOO_PORT_80_TCP=tcp://10.0.0.9:80"}});
  auto launch = launch_of({"env"});
  launch.environment = {"A=1", "PATH=/bin:/usr/bin", "LONG=" + std::string(1000, 'x')};
  const std::string output = "\n" + session.output_of(launch);
  for (const char* wanted : {"\nA=1\n", "\nPATH=/bin:/usr/bin\n", "\nOF_THE_IMAGE=yes\n", "\nUSER=slot1\n",
                             "\nHOME=/glidepod/scratch/dir_1\n"})
    CHECK(output.find(wanted) != std::string::npos);
  for (const char* unwanted : {"GLIDEPOD_", "KUBERNETES_", "FOO_", "/root"})
    CHECK(output.find(unwanted) == std::string::npos);
}

TEST_CASE("job: the image learns its name, and gets the folders every program expects") {
  Session session;
  CHECK(session.output_of({"id", "-un"}) == "slot1\n");
  CHECK(session.output_of({"id", "-gn"}) == "slot1\n");
  CHECK(read_file("/etc/passwd").value() ==
        "root:x:0:0:root:/root:/bin/sh\nslot1:x:29999:29999::/glidepod/scratch/dir_1:/bin/sh\n");
  CHECK(session.output_of({"stat", "-c", "%a %u", "/tmp", "/var/tmp"}) == "1777 0\n1777 0\n");
}

TEST_CASE("job: two megabytes of arguments and environment arrive whole") {
  Session session;
  auto launch = launch_of({"/job", "count"});
  // Linux allows a quarter of the stack limit for all, and 128 KiB for one text.
  launch.environment = {"PATH=/bin"};
  std::size_t bytes = 0;
  for (int i = 0; i < 9; ++i) launch.argv.emplace_back(100000, 'a');
  for (int i = 0; i < 9; ++i)
    launch.environment.push_back(fmt::format("V{}={}", i, std::string(100000, 'e')));
  for (std::size_t i = 2; i < launch.argv.size(); ++i) bytes += launch.argv[i].size();
  for (const auto& entry : launch.environment) bytes += entry.size();
  const auto arrived = parse_integer(trim(session.output_of(launch))).value();
  CHECK(arrived >= static_cast<std::int64_t>(bytes));
  CHECK(arrived < static_cast<std::int64_t>(bytes) + 500);
  launch = launch_of({"/job", "count"});
  for (int i = 0; i < 60; ++i) launch.argv.emplace_back(100000, 'a');
  const auto failed = session.agent.fail(launch);
  CHECK(failed.fault == wire::Fault::user);
  CHECK(failed.message.find("Argument list too long") != std::string::npos);
}

TEST_CASE("job: cannot signal, trace or look into glue") {
  Session session;
  CHECK(session.output_of({"/job", "attack", std::to_string(session.glue.pid())}) == "");
}

TEST_CASE("job: cannot reach glue's socket or write what belongs to root") {
  Session session;
  const std::string output = session.output_of(shell(
      "ls /glidepod/run 2>/dev/null; for f in /glidepod/x /glidepod/bin/x /glidepod/bin/glue /etc/passwd "
      "/glidepod/scratch/x; do (echo >$f) 2>/dev/null && echo wrote $f; done; true"));
  CHECK(output == "");
}

TEST_CASE("job: an attached program is executed whatever the image holds") {
  Session session;
  auto launch = launch_of({"/not/in/the/image", "exit", "37"});
  launch.program_attached = true;
  CHECK(session.agent.run(launch).status == ExitStatus::exited(37));
}

TEST_CASE("job: the launch marker is the user's, and made only for what the job answers for") {
  Session session;
  const std::string marker = std::string(k_sandbox) + "/.condor_container_launched";
  struct stat info {};
  auto launch = launch_of({"/job", "exit", "0"});
  launch.launched_marker = marker;
  session.agent.run(launch);
  REQUIRE(::stat(marker.c_str(), &info) == 0);
  CHECK(info.st_uid == k_user);
  CHECK(info.st_size == 0);
  REQUIRE(::unlink(marker.c_str()) == 0);
  launch.cwd = "/glidepod/scratch/gone";
  CHECK(session.agent.fail(launch).fault == wire::Fault::infrastructure);
  CHECK(::stat(marker.c_str(), &info) != 0);
  launch.cwd = k_sandbox;
  const auto in_the_way = [&](int made) {
    REQUIRE(made == 0);
    const auto failed = session.agent.fail(launch);
    CHECK(failed.message == "the job's folder has " + marker +
                                ", which HTCondor makes itself, and which is no file that the job may write");
    CHECK(failed.fault == wire::Fault::user);
    REQUIRE(std::filesystem::remove(marker));
  };
  in_the_way(::symlink("/etc/passwd", marker.c_str()));
  in_the_way(::mkdir(marker.c_str(), 0755));
  in_the_way(::mkfifo(marker.c_str(), 0644));
  in_the_way(replace_file(marker, "", 0400) ? 0 : -1);
}

TEST_CASE("job: links lead to the sandbox while it runs and are gone afterwards") {
  Session session;
  REQUIRE((::mkdir("/srv", 01755) == 0 || errno == EEXIST));
  ::chmod("/srv", 01755);
  auto launch = launch_of(shell("echo here > /srv/file; pwd -P; cat /data/set/file; cd /data/set && pwd -P"));
  launch.cwd = "/srv";
  launch.links = {{"/srv", k_sandbox}, {"/data/set", k_sandbox}};
  CHECK(session.output_of(launch) == "/glidepod/scratch/dir_1\nhere\n/glidepod/scratch/dir_1\n");
  struct stat info {};
  REQUIRE(::lstat("/srv", &info) == 0);
  CHECK(S_ISDIR(info.st_mode));
  CHECK((info.st_mode & 07777) == 01755);
  CHECK(::lstat("/data", &info) != 0);

  // A job's /tmp on the shared scratch: its own limits and accounting then hold for it.
  auto temporary = launch_of(shell("echo x > /tmp/in_scratch; pwd -P"));
  temporary.cwd = "/tmp";
  temporary.links = {{"/tmp", k_sandbox}};
  CHECK(session.output_of(temporary) == "/glidepod/scratch/dir_1\n");
  CHECK(read_file(std::string(k_sandbox) + "/in_scratch").value() == "x\n");
  REQUIRE(::lstat("/tmp", &info) == 0);
  CHECK((info.st_mode & 07777) == 01777);

  REQUIRE(::mkdir("/srv/full", 0755) == 0);
  auto failed = session.agent.fail(launch);
  CHECK(failed.fault == wire::Fault::user);
  REQUIRE(::rmdir("/srv/full") == 0);
  REQUIRE(::symlink("/etc", "/data") == 0);
  failed = session.agent.fail(launch);
  CHECK(failed.fault == wire::Fault::user);
  CHECK(failed.message.find("/data") != std::string::npos);
  REQUIRE(::lstat("/srv", &info) == 0);
  CHECK(S_ISDIR(info.st_mode));  // the first link was taken back
  REQUIRE(::unlink("/data") == 0);
  for (const auto& link : {wire::Link{"/srv", "/etc"}, wire::Link{"/srv", "/glidepod/scratch/../run"}}) {
    launch.links = {link};
    CHECK(session.agent.fail(launch).fault == wire::Fault::infrastructure);
  }
  // A job chooses the path: as container_target_dir.
  for (const auto& link :
       {wire::Link{"/etc/x", k_sandbox}, wire::Link{"/", k_sandbox}, wire::Link{"/srv/", k_sandbox},
        wire::Link{"/" + std::string(300, 'a'), k_sandbox}}) {
    launch.links = {link};
    CHECK(session.agent.fail(launch).fault == wire::Fault::user);
  }
}
