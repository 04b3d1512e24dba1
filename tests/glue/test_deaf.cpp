// Whatever a job does or leaves, glue answers meanwhile, and comes to an end with it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "glue/processes.hpp"
#include "lib/base/file.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {

using std::chrono::steady_clock;

Milliseconds since(steady_clock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(steady_clock::now() - start);
}

wire::Launch chains(int count) {
  auto launch = launch_of({"/job", "chains", std::to_string(count)});
  launch.limits = {{RLIMIT_NPROC, 400, 400}};
  return launch;
}

// Stops whatever of its own user lives below glue, for ever.
[[noreturn]] void stop_all_below(pid_t glue) {
  while (true)
    if (const auto all = glue::all_processes())
      for (const auto& process : glue::descendants_of(glue, all.value())) ::kill(process.pid, SIGSTOP);
}

// Glue's cleaner may be at work on it for a moment after glue was killed.
void remove_wholly(const char* folder) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(30);
  std::error_code error;
  do std::filesystem::remove_all(folder, error);
  while ((error || std::filesystem::exists(folder)) && steady_clock::now() < deadline);
  CHECK_MESSAGE(!error, error.message());
}

}  // namespace

TEST_CASE("deaf: processes that replace themselves are ended, and glue answers all the while") {
  for (const int count : {1, 8}) {
    Session session;
    const auto launch = chains(count);
    session.agent.send_launch(launch);
    session.agent.expect<wire::Started>();
    session.agent.wait_for_output("ready");
    for (int i = 0; i < 20; ++i) session.agent.beat();
    const auto before = steady_clock::now();
    session.agent.send(wire::Signal{launch.job, SIGKILL});
    const auto beat = session.agent.beat();
    const auto ended = session.agent.expect<wire::JobEnded>();
    MESSAGE(count << " chains ended in " << since(before).count() << " ms, a beat took " << beat.count());
    CHECK(ended.clean);
    CHECK(since(before) < std::chrono::seconds(9));
    CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  }
}

TEST_CASE("deaf: among processes that replace themselves SIGTERM is heard") {
  Session session({.limits = [](glue::ServerOptions& options) { options.grace = std::chrono::seconds(0); }});
  session.agent.send_launch(chains(8));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  const auto before = steady_clock::now();
  REQUIRE(session.glue.signal(SIGTERM).ok());
  session.agent.expect<wire::Goodbye>();
  CHECK(since(before) < std::chrono::seconds(5));
  CHECK(session.agent.expect<wire::JobEnded>().clean);
  CHECK(since(before) < std::chrono::seconds(8));
}

TEST_CASE("deaf: suspending and continuing what replaces itself ends too") {
  Session session;
  const auto launch = chains(4);
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  session.agent.send(wire::Signal{launch.job, SIGSTOP});
  session.agent.beat();
  session.agent.send(wire::Signal{launch.job, SIGCONT});
  session.agent.beat();
  session.agent.send(wire::Signal{launch.job, SIGKILL});
  CHECK(session.agent.expect<wire::JobEnded>().clean);
}

TEST_CASE("deaf: while many files are removed glue answers, and the end of the job is known already") {
  constexpr int k_files = 200'000;
  Session session;
  const auto launch = launch_of({"/job", "files", "/tmp/many", std::to_string(k_files)});
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  CHECK(session.agent.expect<wire::Exited>().status == ExitStatus::exited(0));
  const auto before = steady_clock::now();
  const auto beat = session.agent.beat();
  CHECK(session.agent.fail(launch_of({"/job", "exit", "0"})).message ==
        "another job, or what it has left, is in this container");
  session.agent.send(wire::Signal{launch.job, SIGKILL});  // of no consequence now
  const auto answered = since(before);
  const auto ended = session.agent.expect<wire::JobEnded>();
  MESSAGE("cleaning took " << since(before).count() << " ms, a beat " << beat.count());
  CHECK(answered < since(before));
  CHECK(ended.status == ExitStatus::exited(0));
  CHECK(ended.files_removed == k_files + 1);
  CHECK(ended.clean);
  CHECK(session.agent.run({"/job", "exit", "3"}).status == ExitStatus::exited(3));
}

TEST_CASE("deaf: glue that is ended while it cleans has told how the job ended") {
  for (const int number : {SIGKILL, SIGTERM}) {
    Session session;
    session.agent.send_launch(launch_of({"/job", "files", "/tmp/many", "100000"}));
    session.agent.expect<wire::Started>();
    CHECK(session.agent.expect<wire::Exited>().status == ExitStatus::exited(0));
    REQUIRE(session.glue.signal(number).ok());
    if (number == SIGTERM) {
      session.agent.expect<wire::Goodbye>();
      CHECK(session.agent.expect<wire::JobEnded>().clean);
    }
    CHECK(session.agent.closed());
    remove_wholly("/tmp/many");
  }
}

TEST_CASE("deaf: an agent that comes while glue cleans finds it ready") {
  Session session;
  session.agent.send_launch(launch_of({"/job", "files", "/tmp/many", "100000"}));
  session.agent.expect<wire::Started>();
  session.agent.expect<wire::Exited>();
  session.agent.hang_up();
  session.agent.accept();
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
  CHECK_FALSE(std::filesystem::exists("/tmp/many"));
}

TEST_CASE("deaf: a neighbour's hard links do not keep the cleaning busy") {
  Session session;
  Neighbour neighbour(k_user + 1, [] {
    for (int i = 0;; ++i) (void)::link("/dev/shm/mine", fmt::format("/dev/shm/other{}", i % 50000).c_str());
    return 0;
  });
  session.agent.send_launch(launch_of(shell("umask 0; echo x >/dev/shm/mine; sleep 0.2")));
  session.agent.expect<wire::Started>();
  session.agent.expect<wire::Exited>();
  const auto before = steady_clock::now();
  session.agent.beat();
  const auto ended = session.agent.expect<wire::JobEnded>();
  MESSAGE("removed " << ended.files_removed << " in " << since(before).count() << " ms");
  CHECK(since(before) < std::chrono::seconds(5));
  const auto setting = read_file("/proc/sys/fs/protected_hardlinks");
  // Without that protection (0) any file can be linked for ever: the container is given up, in time.
  if (setting && setting.value() == "1\n") {
    CHECK(ended.clean);
    CHECK(ended.files_removed < 100'000);
  }
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    std::filesystem::remove(entry.path());
}

TEST_CASE("deaf: a neighbour's many folders in a /dev/shm of both keep no job from beginning") {
  constexpr int k_folders = 200'000;
  Neighbour neighbour(k_user + 1, [&] {
    ::umask(0);
    if (::mkdir("/dev/shm/many", 0777) != 0 || ::chdir("/dev/shm/many") != 0) return 1;
    for (int i = 0; i < k_folders; ++i)
      if (::mkdir(std::to_string(i).c_str(), 0777) != 0) return 1;
    return 0;
  });
  REQUIRE(neighbour.wait() == ExitStatus::exited(0));
  // A twentieth of the limits, for a twentieth of what a job could do.
  Session session({.limits = [](glue::ServerOptions& options) {
    options.cleaning = {
        .as_user = Milliseconds(1000), .as_root = Milliseconds(250), .to_die = Milliseconds(500)};
  }});
  const auto before = steady_clock::now();
  const auto ended = session.agent.run({"/job", "exit", "0"});
  MESSAGE("began and ended in " << since(before).count() << " ms");
  CHECK(ended.clean);
  remove_wholly("/dev/shm/many");
}

TEST_CASE("deaf: a cleaner that is stopped by a process of the same user is given up in time") {
  Session session({.limits = [](glue::ServerOptions& options) {
    options.cleaning = {
        .as_user = Milliseconds(1000), .as_root = Milliseconds(3000), .to_die = Milliseconds(500)};
  }});
  session.agent.send_launch(launch_of({"/job", "files", "/tmp/many", "200000"}));
  session.agent.expect<wire::Started>();
  session.agent.expect<wire::Exited>();
  const Neighbour neighbour(k_user, [&] {
    stop_all_below(session.glue.pid());
    return 0;
  });
  const auto before = steady_clock::now();
  session.agent.beat();
  const auto ended = session.agent.expect<wire::JobEnded>();
  CHECK(ended.status == ExitStatus::exited(0));
  CHECK_FALSE(ended.clean);
  CHECK(since(before) < std::chrono::seconds(6));
  std::filesystem::remove_all("/tmp/many");
}

TEST_CASE("deaf: a process that is writing a core dump is ended at once") {
  Session session;
  auto launch = launch_of({"/job", "dump"});
  launch.limits = {{RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY}};
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  CHECK(session.agent.expect<wire::Exited>().status == ExitStatus::exited(0));
  const auto before = steady_clock::now();
  const auto ended = session.agent.expect<wire::JobEnded>();
  MESSAGE("a core dump was ended in " << since(before).count() << " ms");
  CHECK(since(before) < std::chrono::seconds(8));
  CHECK(ended.processes_killed == 1);
  CHECK(ended.clean);
  for (const auto& entry : std::filesystem::directory_iterator(k_sandbox))
    if (entry.path().filename().string().starts_with("core")) std::filesystem::remove(entry.path());
}
