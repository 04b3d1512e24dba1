// Sessions beside a job, with the real glue.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "tests/glue/fake_agent.hpp"
#include "tests/glue/instead.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;

namespace {

// A job that waits, and whoever visits it.
struct Visited : Session {
  wire::Launch job = launch_of({"/job", "deaf"});
  Fd written;
  std::uint64_t last = 0;

  explicit Visited(bool runscript = false) {
    if (runscript) job.argv[0] = "runscript";
    job.runscript = runscript;
    job.environment = {"WORD=the job's", "TERM=dumb"};
    agent.send_launch(job);
    agent.expect<wire::Started>();
    agent.wait_for_output("ready");
  }
  std::uint64_t open(const std::string& command, bool terminal = false) {
    wire::OpenSession message{job.job, ++last, {}};
    message.request.command = command;
    message.request.environment = {"TERM=xterm"};
    message.request.terminal = terminal;
    message.request.rows = 33;
    message.request.columns = 44;
    if (terminal) {
      agent.send(message);
    } else {
      constexpr const char* output = "/glidepod/scratch/session";
      ::unlink(output);
      written.reset(::open(output, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      agent.send(message, {null.get(), written.get(), written.get()});
    }
    return last;
  }
  std::string shown() const {
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(::pread(written.get(), text.data(), text.size(), 0)));
    return text;
  }
  // A whole session without a terminal.
  ExitStatus run(const std::string& command) {
    const auto id = open(command);
    CHECK(agent.expect<wire::SessionStarted>().session == id);
    const auto ended = agent.expect<wire::SessionEnded>();
    CHECK(ended.session == id);
    CHECK(ended.job == job.job);
    return ended.status;
  }
  void end_job() {
    agent.send(wire::Signal{job.job, SIGKILL});
    const auto ended = agent.expect<wire::JobEnded>();
    CHECK(ended.status == ExitStatus::signaled(SIGKILL));
    CHECK(ended.clean);
  }
};

// What the terminal shows until the text is there, or it ends.
std::string read_until(const Fd& master, const std::string& text) {
  std::string shown;
  while (shown.find(text) == std::string::npos) {
    pollfd ready{.fd = master.get(), .events = POLLIN, .revents = 0};
    char piece[512];
    const ssize_t got = ::poll(&ready, 1, 20000) > 0 ? ::read(master.get(), piece, sizeof piece) : 0;
    if (got <= 0) break;
    shown.append(piece, static_cast<std::size_t>(got));
  }
  return shown;
}

void type(const Fd& master, const std::string& keys) {
  REQUIRE(::write(master.get(), keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

}  // namespace

TEST_CASE("sessions: as the job, in every respect") {
  Visited v;
  CHECK(v.run("id -u; id -G; pwd; echo $WORD $TERM $OF_THE_IMAGE; umask; "
              "grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; ls /proc/self/fd") ==
        ExitStatus::exited(0));
  const std::string shown = v.shown();
  CAPTURE(shown);
  CHECK(shown.starts_with(
      fmt::format("{0}\n{0} {1}\n{2}\nthe job's xterm yes\n0022\n", k_user, k_tracking_group, k_sandbox)));
  CHECK(shown.find("CapEff:\t0000000000000000") != std::string::npos);
  CHECK(shown.find("CapPrm:\t0000000000000000") != std::string::npos);
  CHECK(shown.find("NoNewPrivs:\t1") != std::string::npos);
  CHECK(shown.find("Seccomp:\t2") != std::string::npos);
  CHECK(shown.ends_with("0\n1\n2\n3\n"));  // 3 is ls's own
  v.end_job();
}

TEST_CASE("sessions: with what the image's own scripts set, also where they take a shell") {
  const Instead scripts("/.singularity.d");
  std::filesystem::create_directories("/.singularity.d/env");
  REQUIRE(replace_file("/.singularity.d/env/90-environment.sh",
                       "if true; then export FROM_IMAGE=$(echo computed) WORD=image; fi\n", 0644));
  Visited v;
  CHECK(v.run("echo $FROM_IMAGE $WORD $TERM; exit 3") == ExitStatus::exited(3));
  CHECK(v.shown() == "computed the job's xterm\n");
  v.end_job();
}

TEST_CASE("sessions: a shell beside an image that runs by itself") {
  const Instead scripts("/.singularity.d");
  std::filesystem::create_directories("/.singularity.d");
  REQUIRE(replace_file("/.singularity.d/runscript", "#!/bin/sh\nexec /job deaf\n", 0755));
  Visited v(true);
  CHECK(v.run("echo beside; exit 3") == ExitStatus::exited(3));
  CHECK(v.shown() == "beside\n");
  v.end_job();
}

TEST_CASE("sessions: every end arrives as it is, and is not the job's") {
  Visited v;
  for (const int code : {0, 1, 7, 127, 137, 255})
    CHECK(v.run(fmt::format("exit {}", code)) == ExitStatus::exited(code));
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV}) {
    const auto status = v.run(fmt::format("kill -{} $$", number));
    CHECK(status.how == ExitStatus::How::signaled);
    CHECK(status.number == number);
  }
  CHECK(processes_with("deaf") == 1);
  v.end_job();
}

TEST_CASE("sessions: what one leaves ends with it, and nothing of the job does") {
  Visited v;
  CHECK(v.run("(setsid sleep 61234 >/dev/null 2>&1 &) ; trap '' HUP TERM; sleep 61234 & exit 5") ==
        ExitStatus::exited(5));
  CHECK(processes_with("61234") == 0);
  CHECK(processes_with("deaf") == 1);
  v.end_job();
}

TEST_CASE("sessions: one that is closed ends, its neighbour does not") {
  Visited v;
  const auto first = v.open("trap '' TERM HUP INT; (setsid sleep 62345 &); while :; do sleep 62345; done");
  CHECK(v.agent.expect<wire::SessionStarted>().session == first);
  const auto second = v.open("sleep 63456");
  CHECK(v.agent.expect<wire::SessionStarted>().session == second);
  v.agent.send(wire::CloseSession{v.job.job, first});
  CHECK(v.agent.expect<wire::SessionEnded>().session == first);
  CHECK(processes_with("62345") == 0);
  CHECK(processes_with("63456") > 0);
  v.agent.send(wire::CloseSession{v.job.job, first});  // once more, of no consequence
  CHECK(v.run("exit 4") == ExitStatus::exited(4));
  v.end_job();
  CHECK(processes_with("63456") == 0);
}

TEST_CASE("sessions: they end with the job, with the agent and with glue") {
  Visited v;
  v.open("sleep 64567");
  v.agent.expect<wire::SessionStarted>();
  v.open("", true);
  v.agent.expect<wire::SessionStarted>();
  REQUIRE(v.agent.fds().size() == 1);
  const Fd master = v.agent.fds()[0].duplicate().value();  // without it the terminal would hang up
  SUBCASE("the job") {
    v.end_job();
    CHECK(v.agent.run({"/job", "exit", "3"}).status == ExitStatus::exited(3));
  }
  SUBCASE("the agent") {
    v.agent.hang_up();
    v.agent.accept();
  }
  SUBCASE("glue, by SIGTERM") {
    REQUIRE(v.glue.signal(SIGTERM).ok());
    v.agent.expect<wire::Goodbye>();
    v.agent.send(wire::Signal{v.job.job, SIGKILL});
    v.agent.expect<wire::JobEnded>();
  }
  CHECK(processes_with("64567") == 0);
  CHECK(processes_with("/bin/bash") + processes_with("/bin/sh") == 0);
}

TEST_CASE("sessions: killed glue takes them along") {
  Visited v;
  v.open("sleep 65678");
  v.agent.expect<wire::SessionStarted>();
  v.end(SIGKILL);
  // The kernel kills from parent to child; the last of them is this process's child now.
  for (int i = 0; i < 200 && processes_with("sh -c sleep 65678") > 0; ++i) ::poll(nullptr, 0, 20);
  CHECK(processes_with("sh -c sleep 65678") == 0);
}

TEST_CASE("sessions: a terminal of the container's own, with its size, its name and its owner") {
  Visited v;
  const auto id =
      v.open("tty; stat -c %u $(tty); stty size; echo end; read line; echo got=$line; exit 6", true);
  CHECK(v.agent.expect<wire::SessionStarted>().session == id);
  REQUIRE(v.agent.fds().size() == 1);
  const Fd master = v.agent.fds()[0].duplicate().value();
  const std::string shown = read_until(master, "end");
  CAPTURE(shown);
  CHECK(shown.starts_with("/dev/pts/"));
  CHECK(shown.find(fmt::format("\n{}\r\n33 44\r\n", k_user)) != std::string::npos);
  type(master, "typed\n");
  CHECK(read_until(master, "got=typed").find("got=typed") != std::string::npos);
  CHECK(v.agent.expect<wire::SessionEnded>().status == ExitStatus::exited(6));
  v.end_job();
}

TEST_CASE("sessions: a terminal whose other end is closed hangs up") {
  Visited v;
  const auto id = v.open("exec sleep 67890", true);
  v.agent.expect<wire::SessionStarted>();
  REQUIRE(v.agent.fds().size() == 1);
  v.open("exit 3");  // the next message takes the descriptor's place
  CHECK(v.agent.expect<wire::SessionStarted>().session == v.last);
  auto ended = v.agent.expect<wire::SessionEnded>();
  const auto other = v.agent.expect<wire::SessionEnded>();
  if (ended.session != id) ended = other;
  CHECK(ended.status == ExitStatus::signaled(SIGHUP));
  v.end_job();
}

TEST_CASE("sessions: keys reach the program in front, and job control works") {
  Visited v;
  v.open("trap 'echo interrupted' INT; (echo up; exec sleep 66789); echo after; exit 8", true);
  v.agent.expect<wire::SessionStarted>();
  const Fd master = v.agent.fds()[0].duplicate().value();
  read_until(master, "up");
  type(master, "\x03");
  CHECK(read_until(master, "after").find("interrupted") != std::string::npos);
  CHECK(v.agent.expect<wire::SessionEnded>().status == ExitStatus::exited(8));
  // A shell with job control says so if it has no terminal of its own.
  v.open("set -m; sleep 0 & wait; echo done", true);
  v.agent.expect<wire::SessionStarted>();
  const Fd other = v.agent.fds()[0].duplicate().value();
  const std::string shown = read_until(other, "done");
  CHECK(shown.find("job control") == std::string::npos);
  v.agent.expect<wire::SessionEnded>();
  v.end_job();
}

TEST_CASE("sessions: none without its job") {
  Session session;
  wire::OpenSession message{1, 1, {}};
  message.request.terminal = true;
  session.agent.send(message);
  CHECK(session.agent.expect<wire::SessionFailed>().message == "the job has ended");
  session.agent.send(wire::CloseSession{1, 1});
  CHECK(session.agent.run({"/job", "exit", "0"}).clean);

  Visited v;
  message.job = v.job.job + 1;
  v.agent.send(message);
  CHECK(v.agent.expect<wire::SessionFailed>().fault == wire::Fault::infrastructure);
  message = {v.job.job, 0, message.request};
  v.agent.send(message);
  CHECK(v.agent.expect<wire::SessionFailed>().message == "a session without a number");
  v.end_job();
}

TEST_CASE("sessions: a suspended job's are suspended too") {
  Visited v;
  v.open("while :; do :; done");
  v.agent.expect<wire::SessionStarted>();
  v.agent.send(wire::Signal{v.job.job, SIGSTOP});
  v.agent.send(wire::CloseSession{v.job.job, v.last});
  v.agent.send(wire::Signal{v.job.job, SIGCONT});
  CHECK(v.agent.expect<wire::SessionEnded>().session == v.last);
  v.end_job();
}

TEST_CASE("sessions: a stream that leads out of the container is refused, and the job goes on") {
  Visited v;
  const Fd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  wire::OpenSession message{v.job.job, ++v.last, {}};
  message.request.command = "true";
  v.agent.send(message, {folder.get(), null.get(), null.get()});
  CHECK(v.agent.expect<wire::SessionFailed>().message.find("/ is a folder") != std::string::npos);
  CHECK(v.run("exit 3") == ExitStatus::exited(3));
}
