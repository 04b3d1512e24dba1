// Serving: connecting, exit codes and signals, the agent's and Kubernetes' ways to end things.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/socket.hpp"
#include "tests/glue/fake_agent.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {
// Context switches of a process of its own will: one for each time it went to sleep again.
std::int64_t sleeps_of(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid)).value();
  const auto at = status.find("\nvoluntary_ctxt_switches:") + 25;
  return parse_integer(trim(std::string_view(status).substr(at, status.find('\n', at) - at))).value();
}

// A line of /proc/PID/smaps_rollup, in KiB.
std::int64_t memory_of(pid_t pid, const std::string& name) {
  const auto maps = read_file(fmt::format("/proc/{}/smaps_rollup", pid)).value();
  for (const auto& line : split(maps, '\n'))
    if (line.starts_with(name + ":"))
      return parse_integer(trim(line.substr(name.size() + 1, line.size() - name.size() - 4))).value();
  return -1;
}

// It is in epoll for good once it has done nothing over a while.
void wait_until_idle(const Child& process) {
  Loop pause = Loop::create().value();
  std::int64_t before = -1;
  while (before != sleeps_of(process.pid())) {
    before = sleeps_of(process.pid());
    REQUIRE(pause.run_once(Milliseconds(200)).ok());
  }
}
}  // namespace

TEST_CASE("serve: every exit code and the signals arrive as they are") {
  Session session;
  for (int code = 0; code < 256; ++code) {
    const auto ended = session.agent.run({"/job", "exit", std::to_string(code)});
    CHECK(ended.status == ExitStatus::exited(code));
    CHECK(ended.clean);
  }
  for (const int number : {SIGHUP, SIGINT, SIGABRT, SIGSEGV, SIGKILL, SIGTERM, SIGPIPE, SIGUSR1, SIGRTMAX}) {
    const auto ended = session.agent.run({"/job", "raise", std::to_string(number)});
    CHECK(ended.status.how == ExitStatus::How::signaled);
    CHECK(ended.status.number == number);
  }
}

TEST_CASE("serve: a job's account has its times and its memory") {
  Session session;
  const auto ended = session.agent.run(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  CHECK(ended.user_microseconds > 1000);
  CHECK(ended.max_rss_kib > 500);
  CHECK(ended.started_ns > 1'600'000'000'000'000'000);
  CHECK(ended.ended_ns > ended.started_ns);
  CHECK(ended.processes_killed == 0);
  CHECK(ended.files_removed == 0);
}

TEST_CASE("serve: a job's end is told with what its container's memory says") {
  // As a container sees its own group of version 2.
  for (const char* folder : {"/sys", "/sys/fs", "/sys/fs/cgroup"}) ::mkdir(folder, 0755);
  // The same files for ever, as the kernel's are.
  const auto put = [](const char* name, const std::string& text) {
    const auto file = open_file(std::string("/sys/fs/cgroup/") + name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    REQUIRE((file && write_all(file.value(), text)));
  };
  put("memory.events", "oom 4\noom_kill 4\n");
  put("memory.max", "104857600\n");
  put("memory.stat", "anon 104857600\nfile 999999999\n");
  {
    Session session;
    session.agent.run({"/job", "exit", "0"});
    CHECK(session.agent.exited()->oom_kills == 0);
    CHECK(session.agent.exited()->memory_limit_kib == 102400);
    CHECK(session.agent.exited()->memory_peak_kib == 0);
    const auto launch = launch_of({"/job", "polite"});
    session.agent.send_launch(launch);
    session.agent.expect<wire::Started>();
    session.agent.wait_for_output("ready");
    session.agent.send(wire::Beat{7});
    const auto beat = session.agent.expect<wire::Beat>();
    CHECK(beat.number == 7);
    CHECK(beat.memory_kib == 102400);
    put("memory.events", "oom 6\noom_kill 5\n");
    session.agent.send(wire::Signal{launch.job, SIGTERM});
    const auto exited = session.agent.expect<wire::Exited>();
    CHECK(exited.status == ExitStatus::exited(5));
    CHECK(exited.oom_kills == 1);
    CHECK(exited.memory_peak_kib == 102400);
    CHECK(exited.max_rss_kib > 500);
    session.agent.expect<wire::JobEnded>();
  }
  for (const char* name : {"memory.events", "memory.max", "memory.stat"})
    ::unlink((std::string("/sys/fs/cgroup/") + name).c_str());
}

TEST_CASE("serve: glue started first waits for the agent without waking, then connects") {
  const Child glue = start_glue();
  wait_until_idle(glue);
  FakeAgent agent;
  CHECK(agent.accept().container == "payload-0");
  CHECK(agent.run({"/job", "exit", "3"}).status == ExitStatus::exited(3));
  wait_until_idle(glue);
  REQUIRE(glue.signal(SIGTERM).ok());
  CHECK(agent.expect<wire::Goodbye>().reason == "SIGTERM");
}

TEST_CASE("serve: an agent that is not root is refused") {
  auto stranger = Child::fork([] {
    // A socket of another user's in the run directory can only come from a mistake; still, it is not obeyed.
    if (::chmod("/glidepod/run", 0777) != 0 || ::setuid(k_user) != 0) return 1;
    auto listener = wire::listen_at(k_socket, 0666);
    Loop loop = Loop::create().value();
    if (!listener || !loop.watch(listener->get(), EPOLLIN, [](std::uint32_t) {})) return 2;
    (void)loop.run_once(std::chrono::seconds(20));
    auto socket = wire::accept_from(listener.value());
    if (!socket || !socket.value()) return 3;
    ::fcntl(socket->get(), F_SETFL, 0);
    char byte;
    return ::read(socket->get(), &byte, 1) == 0 ? 0 : 4;  // closed without a Hello
  });
  REQUIRE(stranger.ok());
  Child glue = start_glue();
  CHECK(stranger->wait().value().status == ExitStatus::exited(0));
  ::chmod("/glidepod/run", 0700);
  ::unlink(k_socket);
  FakeAgent agent;
  agent.accept();
  REQUIRE(glue.signal(SIGKILL).ok());
  CHECK(glue.wait().ok());
}

TEST_CASE("serve: without root its jobs run as its own user, and as nobody else") {
  FakeAgent agent;
  REQUIRE(::chmod("/glidepod/run", 0755) == 0);
  REQUIRE(::chmod(k_socket, 0666) == 0);
  Child glue = start_glue({.rights = Rights::none});
  agent.accept();
  auto launch = launch_of(shell("id -u; echo left >/dev/shm/left; sleep 1000 & exit 4"));
  launch.groups.clear();
  const auto ended = agent.run(launch);
  CHECK(ended.status == ExitStatus::exited(4));
  CHECK(ended.processes_killed == 1);
  CHECK(ended.files_removed == 1);
  CHECK(ended.clean);
  CHECK(agent.output() == fmt::format("{}\n", k_user));
  launch = launch_of({"/job", "exit", "0"});
  ++launch.uid;
  const auto failed = agent.fail(launch);
  CHECK(failed.fault == wire::Fault::infrastructure);
  CHECK(failed.message.find("become the job's user: Operation not permitted") != std::string::npos);
  REQUIRE(glue.signal(SIGTERM).ok());
  CHECK(glue.wait().value().status == ExitStatus::exited(143));
  ::chmod("/glidepod/run", 0700);
}

TEST_CASE("serve: when the agent goes, its job goes too, and the next agent finds glue ready") {
  Session session;
  session.agent.send_launch(launch_of({"/job", "deaf"}));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  session.agent.hang_up();
  session.agent.accept();
  CHECK(processes_with("deaf") == 0);
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
}

TEST_CASE("serve: SIGTERM ends an idle glue at once, with a goodbye") {
  for (const int number : {SIGTERM, SIGINT}) {
    Session session;
    CHECK(session.end(number) == ExitStatus::exited(143));
    session.agent.expect<wire::Goodbye>();
    CHECK(session.agent.closed());
  }
  Child alone = start_glue();  // no agent was ever there
  wait_until_idle(alone);
  REQUIRE(alone.signal(SIGTERM).ok());
  CHECK(alone.wait().value().status == ExitStatus::exited(143));
}

TEST_CASE("serve: whatever an image names as its STOPSIGNAL ends glue as SIGTERM does") {
  struct Case {
    int number;
    const char* name;
  };
  for (const Case& one :
       {Case{SIGQUIT, "SIGQUIT"}, Case{SIGWINCH, "SIGWINCH"}, Case{SIGRTMIN + 3, "SIGRTMIN+3"},
        Case{SIGHUP, "SIGHUP"}, Case{SIGUSR1, "SIGUSR1"}, Case{SIGUSR2, "SIGUSR2"}, Case{SIGPWR, "SIGPWR"},
        Case{SIGABRT, "SIGABRT"}, Case{SIGALRM, "SIGALRM"}, Case{SIGPIPE, "SIGPIPE"},
        Case{SIGRTMAX, "SIGRTMIN+30"}}) {
    CAPTURE(one.name);
    Session idle;
    CHECK(idle.end(one.number) == ExitStatus::exited(143));
    CHECK(idle.agent.expect<wire::Goodbye>().reason == one.name);
    CHECK(idle.agent.closed());
  }
  Session session;
  session.agent.send_launch(launch_of({"/job", "polite"}));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  CHECK(session.end(SIGRTMIN + 3) == ExitStatus::exited(143));
  session.agent.expect<wire::Goodbye>();
  CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::exited(5));  // it got SIGTERM
}

TEST_CASE("serve: signals that stop, continue or tell mean nothing to glue") {
  Session session;
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGURG, SIGCHLD})
    REQUIRE(session.glue.signal(number).ok());
  CHECK(session.agent.run({"/job", "exit", "9"}).status == ExitStatus::exited(9));
}

TEST_CASE("serve: SIGTERM reaches a running job, whose end is reported after the goodbye") {
  Session session;
  session.agent.send_launch(launch_of({"/job", "polite"}));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  CHECK(session.end(SIGTERM) == ExitStatus::exited(143));
  session.agent.expect<wire::Goodbye>();
  CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::exited(5));
  CHECK(session.agent.closed());
}

TEST_CASE("serve: a job that the agent sends its own signal gets no SIGTERM beside it") {
  Session session;
  const auto launch = launch_of({"/job", "polite"});
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  REQUIRE(session.glue.signal(SIGTERM).ok());
  session.agent.expect<wire::Goodbye>();
  session.agent.send(wire::Signal{launch.job, SIGWINCH});  // which it passes over
  const auto before = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - before < std::chrono::milliseconds(2500)) session.agent.beat();
  session.agent.send(wire::Signal{launch.job, SIGUSR1});
  CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::signaled(SIGUSR1));
}

TEST_CASE("serve: a job deaf to SIGTERM is killed after the time of grace") {
  Session session({.limits = [](glue::ServerOptions& options) { options.grace = std::chrono::seconds(0); }});
  session.agent.send_launch(launch_of({"/job", "deaf"}));
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  CHECK(session.end(SIGTERM) == ExitStatus::exited(143));
  session.agent.expect<wire::Goodbye>();
  CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("serve: SIGTERM reaches a suspended job too") {
  Session session;
  const auto launch = launch_of({"/job", "polite"});
  session.agent.send_launch(launch);
  session.agent.expect<wire::Started>();
  session.agent.wait_for_output("ready");
  session.agent.send(wire::Signal{launch.job, SIGSTOP});
  // Answered by a refusal once the signal before it was handled.
  session.agent.fail(launch_of({"/job", "exit", "0"}));
  CHECK(session.end(SIGTERM) == ExitStatus::exited(143));
  session.agent.expect<wire::Goodbye>();
  CHECK(session.agent.expect<wire::JobEnded>().status == ExitStatus::exited(5));
}

TEST_CASE("serve: Finish ends glue with success, with and without a job") {
  Session idle;
  idle.agent.send(wire::Finish{});
  CHECK(idle.glue.wait().value().status == ExitStatus::exited(0));
  idle.agent.hang_up();
  Child second = start_glue();
  idle.agent.accept();
  idle.agent.send_launch(launch_of({"/job", "deaf"}));
  idle.agent.expect<wire::Started>();
  idle.agent.send(wire::Finish{});
  CHECK(second.wait().value().status == ExitStatus::exited(0));
  CHECK(idle.agent.expect<wire::JobEnded>().status == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("serve: the agent's signals reach the main process, KILL and STOP every process") {
  Session session;
  auto& agent = session.agent;
  auto launch = launch_of({"/job", "polite"});
  agent.send_launch(launch);
  agent.expect<wire::Started>();
  agent.wait_for_output("ready");
  agent.send(wire::Signal{launch.job + 1000, SIGKILL});  // of another job: nothing happens
  agent.send(wire::Signal{launch.job, SIGTERM});
  CHECK(agent.expect<wire::JobEnded>().status == ExitStatus::exited(5));

  launch = launch_of(shell("/job deaf & exec /job polite"));
  agent.send_launch(launch);
  const pid_t pid = agent.expect<wire::Started>().pid;
  agent.wait_for_output("ready\nready");
  const auto state = [&] {
    const auto stat = read_file(fmt::format("/proc/{}/stat", pid)).value();
    return stat[stat.rfind(')') + 2];
  };
  agent.send(wire::Signal{launch.job, SIGSTOP});
  while (state() != 'T') ::sched_yield();
  agent.send(wire::Signal{launch.job, SIGCONT});
  while (state() == 'T') ::sched_yield();
  agent.send(wire::Signal{launch.job, SIGSTOP});
  agent.send(wire::Signal{launch.job, SIGKILL});
  const auto ended = agent.expect<wire::JobEnded>();
  CHECK(ended.status == ExitStatus::signaled(SIGKILL));
  CHECK(ended.processes_killed == 2);
  CHECK(processes_with("deaf") == 0);
}

TEST_CASE("serve: a second launch is refused while a job runs, also where glue is to end") {
  Session session;
  auto& agent = session.agent;
  const auto first = launch_of({"/job", "polite"});
  agent.send_launch(first);
  agent.expect<wire::Started>();
  agent.wait_for_output("ready");
  const Fd null = open_file("/dev/null", O_RDWR).value();
  const auto refused = agent.fail(launch_of({"/job", "exit", "0"}));
  CHECK(refused.fault == wire::Fault::infrastructure);
  CHECK(refused.message == "another job, or what it has left, is in this container");
  REQUIRE(session.glue.signal(SIGTERM).ok());
  agent.expect<wire::Goodbye>();
  CHECK(agent.fail(launch_of({"/job", "exit", "0"})).message == "the container is about to end");
  agent.send(wire::Signal{first.job, SIGTERM});
  CHECK(agent.expect<wire::JobEnded>().job == first.job);
}

TEST_CASE("serve: the log calls a job as the agent does, whether it runs or is refused") {
  const Fd log(::memfd_create("log", MFD_CLOEXEC));
  Session session({.stderr_fd = log.get()});
  auto launch = launch_of({"/job", "exit", "0"});
  launch.about = "job=12.0 owner=alice";
  CHECK(session.agent.run(launch).clean);
  launch.uid = 0;
  session.agent.fail(launch);
  launch = launch_of({"/job", "exit", "0"});
  CHECK(session.agent.run(launch).clean);
  session.end(SIGTERM);
  ::lseek(log.get(), 0, SEEK_SET);
  const std::string shown = read_all(log, "log", 1 << 20).value();
  CAPTURE(shown);
  for (const auto& line : {std::string("event=job_started job=12.0 owner=alice pid="),
                           std::string("event=job_ended job=12.0 owner=alice status="),
                           std::string("event=launch_refused job=12.0 owner=alice reason="),
                           fmt::format("event=job_started job={} pid=", launch.job)})
    CHECK(shown.find(line) != std::string::npos);
}

TEST_CASE("serve: glue works with closed descriptors of its own, and keeps little memory") {
  FakeAgent agent;
  Child glue = start_glue({.close_standard_descriptors = true});
  agent.accept();
  CHECK(agent.run(shell("echo out; echo err >&2; cat")).status == ExitStatus::exited(0));
  CHECK(agent.output() == "out\nerr\n");
  // File pages are shared with every other glue of the node; what is written to is not.
  MESSAGE("memory of glue: " << memory_of(glue.pid(), "Rss") << " KiB resident, "
                             << memory_of(glue.pid(), "Anonymous") << " KiB its own");
  CHECK(memory_of(glue.pid(), "Anonymous") <= 1024);
  auto large = launch_of({"/job", "count"});
  large.environment = {"PATH=/bin"};
  for (int i = 0; i < 18; ++i) large.argv.emplace_back(100000, 'a');
  CHECK(agent.run(large).status == ExitStatus::exited(0));
  wait_until_idle(glue);  // it reports first, then gives memory back
  CHECK(memory_of(glue.pid(), "Anonymous") <= 1024);
  REQUIRE(glue.signal(SIGTERM).ok());
  CHECK(glue.wait().value().status == ExitStatus::exited(143));
}

TEST_CASE("serve: launching costs little more than fork and exec") {
  Session session;
  constexpr int k_rounds = 200;
  const auto median = [](const auto& once) {
    std::vector<double> times;
    for (int i = 0; i < k_rounds; ++i) {
      const auto before = std::chrono::steady_clock::now();
      once();
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count());
    }
    std::ranges::sort(times);
    return times[k_rounds / 2];
  };
  const double bare = median([] { (void)Child::spawn({.argv = {"/job", "exit", "0"}})->wait(); });
  const double launched = median([&] { session.agent.run({"/job", "exit", "0"}); });
  MESSAGE("median of " << k_rounds << ": bare " << bare << " ms, from Launch to JobEnded " << launched
                       << " ms");
  CHECK(launched < bare + 20);  // far above what it takes, for a machine with other things to do
}

TEST_CASE("serve: nonsense from the agent is a lost agent") {
  Session session;
  session.agent.send(wire::Goodbye{});
  CHECK(session.agent.closed());
  session.agent.accept();
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);
}

TEST_CASE("install: puts a working copy where the payload containers look for it") {
  REQUIRE((::mkdir("/volume", 0755) == 0 || errno == EEXIST));
  for (int i = 0; i < 2; ++i) {  // the second time over the first
    auto child = Child::spawn({.argv = {"/glidepod/bin/glue", "--install", "/volume"}});
    REQUIRE(child.ok());
    CHECK(child->wait().value().status == ExitStatus::exited(0));
  }
  struct stat info {};
  const auto mode_of = [&](const char* path) { return ::stat(path, &info) == 0 ? info.st_mode & 07777 : 0U; };
  CHECK(mode_of("/volume/bin") == 0755);
  CHECK(mode_of("/volume/run") == 0700);
  CHECK(mode_of("/volume/scratch") == 0755);
  CHECK(mode_of("/volume/bin/glue") == 0555);
  CHECK(read_file("/volume/bin/glue").value() == read_file("/glidepod/bin/glue").value());
  REQUIRE(::stat("/dev/shm", &info) == 0);
  CHECK(read_file("/volume/bin/pod-shm").value() == fmt::format("{}\n", info.st_dev));
  const auto code_of = [](std::vector<std::string> argv) {
    return Child::spawn({.argv = std::move(argv)}).value().wait().value().status;
  };
  CHECK(code_of({"/volume/bin/glue", "--version"}) == ExitStatus::exited(0));
  CHECK(code_of({"/volume/bin/glue"}) == ExitStatus::exited(2));
  CHECK(code_of({"/volume/bin/glue", "--what"}) == ExitStatus::exited(2));
  CHECK(code_of({"/volume/bin/glue", "--install", "/absent"}) == ExitStatus::exited(1));
  CHECK(code_of({"/volume/bin/glue", "--container", "a", "--run-directory", "/absent"}) ==
        ExitStatus::exited(1));
}
