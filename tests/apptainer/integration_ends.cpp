#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/apptainer/small_agent.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

using Strings = std::vector<std::string>;

bool one_line_with(const std::string& text, const std::string& part) {
  return !text.empty() && text.find('\n') == text.size() - 1 && text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("apptainer: ends with every exit code of the job") {
  SmallAgent agent;
  for (int code = 0; code <= 255; ++code) {
    const auto ran = agent.run({}, ExitStatus::exited(code));
    CHECK(ran.status == ExitStatus::exited(code));
    CHECK(ran.out + ran.err == "");
  }
}

TEST_CASE("apptainer: dies by every signal that the job died by, with no core") {
  SmallAgent agent;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH ||
        number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU || number == 32 ||
        number == 33)
      continue;  // of these no process dies; 32 and 33 are the C library's own
    CAPTURE(number);
    const auto ran = agent.run({.in_child =
                                    [] {
                                      const rlimit most{1 << 20, 1 << 20};
                                      ::setrlimit(RLIMIT_CORE, &most);
                                    }},
                               ExitStatus::signaled(number, true));
    CHECK(ran.status == ExitStatus::signaled(number, false));
  }
}

TEST_CASE("apptainer: a failure is one line, where the starter looks for it, and an exit code") {
  SmallAgent agent;
  for (const auto& [fault, code] :
       {std::pair(wire::Fault::user, 255), std::pair(wire::Fault::infrastructure, 125)}) {
    agent.start({.arguments = {"-s", "-q", "test", "-C", "docker://image"}});
    CHECK(agent.bind().verb == wire::Verb::test);
    agent.fail(fault, "no such image\nin the registry");
    auto ran = agent.ran();
    CHECK(ran.status == ExitStatus::exited(code));
    CHECK(ran.out == "docker://image: no such image\n");
    CHECK(ran.err == "");
    agent.start();
    agent.bind();
    agent.fail(fault, "cannot pull docker://image: denied");
    ran = agent.ran();
    CHECK(ran.status == ExitStatus::exited(code));
    CHECK(ran.out == "");
    CHECK(ran.err == "apptainer: cannot pull docker://image: denied\n");
  }
}

TEST_CASE("apptainer: a wrong command line or image never reaches the agent") {
  SmallAgent agent;
  agent.stop_listening();
  for (const Strings& arguments :
       {Strings{"exec", "--fakeroot", "docker://i", "c"}, Strings{"exec", "docker://i"},

        Strings{"exec", "/", "/bin/sh"}, Strings{"shell", "docker://i"}}) {
    agent.start({.arguments = arguments});
    const auto ran = agent.ran();
    CHECK(ran.status == ExitStatus::exited(255));
    CHECK(one_line_with(ran.err, "apptainer: "));
    CHECK(ran.out == "");
  }
  agent.start({.arguments = {"--version"}});
  auto ran = agent.ran();
  CHECK(ran.status.success());
  CHECK(one_line_with(ran.out, "apptainer version "));
  agent.start({.arguments = {"--help"}});
  ran = agent.ran();
  CHECK(ran.status.success());
  CHECK(ran.out.find("--containall") != std::string::npos);
}

TEST_CASE("apptainer: with no agent it says so and starts nothing") {
  SmallAgent agent;
  agent.stop_listening();
  agent.start({.environment = {"TEST_STAY_MS=0"}});
  auto ran = agent.ran();
  CHECK(ran.status == ExitStatus::exited(125));
  CHECK(
      one_line_with(ran.err, "docker://image: cannot reach the pilot's agent: connect to " + agent.folder()));
  CHECK(one_line_with(ran.err, "Connection refused"));
  agent.start({.arguments = {"test", "docker://image"}, .environment = {"TEST_EXEC_SOCKET=/none"}});
  ran = agent.ran();
  CHECK(ran.status == ExitStatus::exited(125));
  CHECK(ran.out ==
        "docker://image: cannot reach the pilot's agent: connect to /none: No such file or directory\n");
}

TEST_CASE("apptainer: an agent that vanishes is told apart from a job that ended") {
  const Strings leave_at_once{"TEST_STAY_MS=0"};
  const std::string lost = "docker://image: lost the connection to the pilot's agent before the job ended";
  SmallAgent agent;
  SUBCASE("before it read anything") {
    agent.start({.environment = leave_at_once});
    agent.accept();
  }
  SUBCASE("before it read a request that does not fit the socket") {
    Strings arguments{"exec", "docker://image"};
    arguments.resize(12, std::string(100000, 'x'));
    agent.start({.arguments = arguments, .environment = leave_at_once});
    agent.accept();
  }
  SUBCASE("while the job runs") {
    agent.start({.environment = leave_at_once});
    agent.bind();
    agent.vanish();
  }
  SUBCASE("in the middle of its answer") {
    agent.start({.environment = leave_at_once});
    const Fd connection = agent.accept();
    const std::string half("\x06\0\0\0\x60\0\0\0\0\0\0\0\x01", 13);
    REQUIRE(::write(connection.get(), half.data(), half.size()) == 13);
  }
  const auto ran = agent.ran();
  CHECK(ran.status == ExitStatus::exited(125));
  CHECK(one_line_with(ran.err, lost));
}

TEST_CASE("apptainer: without its agent it stays until it is told to go") {
  SmallAgent agent;
  agent.start();
  agent.bind();
  agent.vanish();
  // SIGCONT says nothing about ending; after it the process still waits, for SIGTERM.
  REQUIRE(agent.child().signal(SIGCONT).ok());
  REQUIRE(agent.child().signal(SIGTERM).ok());
  const auto ran = agent.ran();
  CHECK((ran.status == ExitStatus::exited(125)));
  CHECK(one_line_with(ran.err, "lost the connection to the pilot's agent before the job ended"));
}

// Its end at once would be taken for the job's: the starter outlives the agent for a moment.
TEST_CASE("apptainer: it stays also where the agent never heard of the job") {
  SmallAgent agent;
  const Strings stay{"TEST_STAY_MS=300"};
  const auto began = std::chrono::steady_clock::now();
  SUBCASE("since nobody listens any more") {
    agent.stop_listening();
    agent.start({.environment = stay});
  }
  SUBCASE("since it ended before it read the request") {
    Strings arguments{"exec", "docker://image"};
    arguments.resize(12, std::string(100000, 'x'));
    agent.start({.arguments = arguments, .environment = stay});
    agent.accept();
  }
  const auto ran = agent.ran();
  CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(300));
  CHECK(ran.status == ExitStatus::exited(125));
}

TEST_CASE("apptainer: nonsense from the agent is the infrastructure's fault") {
  SmallAgent agent;
  for (const std::string& bytes : {std::string("\0\0\0\0\x63\0\0\0\0\0\0\0", 12),      // an unknown type
                                   std::string("\x01\0\0\0\x60\0\0\0\0\0\0\0\0", 13),  // too short for Ended
                                   std::string("\0\0\0\0\0\0\0\0\xff\0\0\0", 12)}) {   // too many descriptors
    agent.start({.environment = {"TEST_STAY_MS=0"}});
    Fd connection = agent.accept();
    REQUIRE(::write(connection.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    connection.reset();  // and with it the unread request, which holds the pipes
    const auto ran = agent.ran();
    CHECK(ran.status == ExitStatus::exited(125));
    CHECK(one_line_with(ran.err, "docker://image: "));
  }
}

TEST_CASE("apptainer: signals reach the job and do not end the program") {
  SmallAgent agent;
  agent.start();
  agent.bind();
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH,
                           SIGABRT, SIGXCPU, SIGRTMIN + 3}) {
    REQUIRE(agent.child().signal(number).ok());
    CHECK(agent.next_signal() == number);
  }
  SUBCASE("and it ends as the job then does") {
    agent.answer(ExitStatus::signaled(SIGTERM));
    CHECK(agent.ran().status == ExitStatus::signaled(SIGTERM));
  }
  SUBCASE("a stop from the terminal stops both, and both go on") {
    REQUIRE(agent.child().signal(SIGTSTP).ok());
    CHECK(agent.next_signal() == SIGTSTP);
    siginfo_t stopped{};
    REQUIRE(::waitid(P_PID, agent.child().pid(), &stopped, WSTOPPED) == 0);
    CHECK(stopped.si_code == CLD_STOPPED);
    agent.answer(ExitStatus::exited(3));  // is kept for it
    REQUIRE(agent.child().signal(SIGCONT).ok());
    CHECK(agent.ran().status == ExitStatus::exited(3));
  }
}

TEST_CASE("apptainer: a signal that its starter ignores is not the job's either") {
  SmallAgent agent;
  agent.start({.in_child = [] { ::signal(SIGHUP, SIG_IGN); }});
  agent.bind();
  REQUIRE(agent.child().signal(SIGHUP).ok());
  REQUIRE(agent.child().signal(SIGUSR1).ok());
  CHECK(agent.next_signal() == SIGUSR1);
  agent.answer(ExitStatus::signaled(SIGHUP));
  CHECK(agent.ran().status == ExitStatus::signaled(SIGHUP));
}
