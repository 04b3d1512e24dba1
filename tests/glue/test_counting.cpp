// What a job has on disk outside of its sandbox: counted beside the beats, whatever the job does against it.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {

// /tmp as a container has it; that of the other tests is memory, which is not counted.
struct Disk {
  Disk() {
    for (const char* folder : {"/tmp", "/disk", "/disk/lower", "/disk/upper", "/disk/work"})
      ::mkdir(folder, 0755);
    REQUIRE(::mount("overlay", "/tmp", "overlay", 0,
                    "lowerdir=/disk/lower,upperdir=/disk/upper,workdir=/disk/work") == 0);
    REQUIRE(::chmod("/tmp", 01777) == 0);
  }
  ~Disk() {
    ::umount2("/tmp", MNT_DETACH);
    std::filesystem::remove_all("/disk");
  }
};

GlueOptions counts(glue::Counting::Limits limits) {
  return {.limits = [limits](glue::ServerOptions& options) { options.counting = limits; }};
}
// As often as it is asked.
constexpr glue::Counting::Limits k_always{
    .age = Milliseconds(0), .walk = std::chrono::seconds(20), .hung = std::chrono::seconds(30)};

// A job that does this, then waits.
wire::Launch begin(Session& session, const std::string& script) {
  auto launch = launch_of(shell(script + "; echo ready; while :; do sleep 1; done"));
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  return launch;
}

// The answer of a beat that comes after a count which was begun now.
wire::Beat count(Session& session) {
  Loop pause = Loop::create().value();
  session.agent.beat();
  REQUIRE(pause.run_once(Milliseconds(300)).ok());
  session.agent.beat();
  return session.agent.beat_answer();
}

wire::JobEnded end(Session& session, const wire::Launch& launch) {
  session.agent.send(wire::Signal{launch.job, SIGKILL});
  return session.agent.expect<wire::JobEnded>();
}

}  // namespace

TEST_CASE("counting: a job's own files count by the disk that they take, each once") {
  const Disk disk;
  Session session(counts(k_always));
  REQUIRE(replace_file("/tmp/of-the-image", std::string(1 << 20, 'x'), 0644).ok());
  const auto launch =
      begin(session,
            "mkdir -p /tmp/a/b; head -c 4194304 /dev/zero >/tmp/large; cd /tmp/a/b; head -c 1048576 "
            "/dev/zero >x; ln x y; ln x ../z; truncate -s 1G sparse; ln -s / root; mkfifo pipe; "
            "head -c 1048576 /dev/zero >/dev/shm/memory");
  const auto answer = count(session);
  CHECK(answer.disk_kib >= 5120);
  CHECK(answer.disk_kib < 5300);
  CHECK(answer.disk_complete);
  CHECK(end(session, launch).clean);
  // The next job begins anew.
  const auto next = begin(session, ":");
  CHECK(count(session).disk_kib == 0);
  CHECK(end(session, next).clean);
}

TEST_CASE("counting: what a job closes to itself, or nests too deep, is missing and said to be") {
  const Disk disk;
  Session session(counts(k_always));
  const auto launch =
      begin(session,
            "head -c 1048576 /dev/zero >/tmp/seen; mkdir /tmp/closed; head -c 1048576 /dev/zero "
            ">/tmp/closed/x; chmod 300 /tmp/closed");
  auto answer = count(session);
  CHECK(answer.disk_kib >= 1024);
  CHECK(answer.disk_kib < 1100);
  CHECK_FALSE(answer.disk_complete);
  CHECK(end(session, launch).clean);
  const auto deep = begin(session, "/job nest /tmp/deep 5000; head -c 1048576 /dev/zero >/tmp/seen");
  answer = count(session);
  CHECK(answer.disk_kib >= 1024);
  CHECK_FALSE(answer.disk_complete);
  CHECK(end(session, deep).clean);
}

TEST_CASE("counting: a job that kills and stops all that it can does not keep it from being counted") {
  const Disk disk;
  Session session(counts(k_always));
  session.agent.send_launch(
      launch_of(shell("/job files /tmp/many 20000; head -c 1048576 /dev/zero >/tmp/large; echo "
                      "ready; while :; do kill -STOP -1; kill -KILL -1; done")));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  wire::Beat answer;
  for (int i = 0; i < 20 && answer.disk_kib == 0; ++i) answer = count(session);
  CHECK(answer.disk_kib >= 1024);
  CHECK(answer.disk_complete);
}

TEST_CASE("counting: many files do not keep glue from its answers, and the count has an end") {
  const Disk disk;
  constexpr const char* k_many = "/job files /tmp/many 20000; head -c 1048576 /dev/zero >/tmp/large";
  SUBCASE("it tells what it has found so far") {
    auto limits = k_always;
    limits.walk = Milliseconds(0);
    Session session(counts(limits));
    const auto launch = begin(session, k_many);
    const auto answer = count(session);
    CHECK_FALSE(answer.disk_complete);
    MESSAGE("a beat took " << session.agent.beat().count() << " ms");
    CHECK(end(session, launch).clean);
  }
  SUBCASE("it is killed when it hangs") {
    auto limits = k_always;
    limits.hung = Milliseconds(1);
    Session session(counts(limits));
    const auto launch = begin(session, k_many);
    const auto answer = count(session);
    CHECK_FALSE(answer.disk_complete);
    CHECK(answer.disk_kib == 0);
    CHECK(end(session, launch).clean);
  }
  SUBCASE("the job ends meanwhile") {
    Session session(counts(k_always));
    const auto launch = begin(session, k_many);
    MESSAGE("a beat took " << session.agent.beat().count() << " ms");
    CHECK(end(session, launch).clean);
    CHECK(session.agent.run({"/job", "exit", "3"}).status == ExitStatus::exited(3));
  }
}

TEST_CASE("counting: what was counted is not counted again at once") {
  const Disk disk;
  Session session;
  const auto launch = begin(session, "head -c 1048576 /dev/zero >/tmp/one");
  CHECK(count(session).disk_kib >= 1024);
  REQUIRE(replace_file("/tmp/two", std::string(1 << 20, 'x'), 0644).ok());
  REQUIRE(::chown("/tmp/two", k_user, k_user) == 0);
  CHECK(count(session).disk_kib < 2000);
  CHECK(end(session, launch).clean);
}
