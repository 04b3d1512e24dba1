#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "glue/server.hpp"
#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/messages.hpp"
#include "tests/glue/isolation.hpp"

namespace glidepod::glue::testing {

constexpr const char* k_socket = "/glidepod/run/agent.sock";

// Of the real glue: root, CAP_SETUID, CAP_SETGID, CAP_KILL and no_new_privs, as in a pod; or k_user and
// nothing, with --unprivileged.
enum class Rights { of_a_pod, none };
struct GlueOptions {
  std::vector<std::string> environment = {};
  bool close_standard_descriptors = false;
  Rights rights = Rights::of_a_pod;
  int stderr_fd = -1;                          // -1: the test's own
  std::function<void()> prepare;               // in its process, just before it is glue
  std::function<void(ServerOptions&)> limits;  // other limits than the program's: same code, without its main
};
Child start_glue(const GlueOptions& options = {});

// The system call answers with this error in this process and what it executes. With an argument: only where
// that is at least so much.
void fail_system_call(int number, int code);
void fail_system_call(int number, int code, unsigned argument, std::uint64_t at_least);

// A job as the agent would ask for it.
wire::Launch launch_of(std::vector<std::string> argv);

// Stands in for the agent of one glue. Every wait has a limit and fails the test.
class FakeAgent {
 public:
  FakeAgent();  // listens; no glue yet
  ~FakeAgent();

  // Takes the next connection and its Hello.
  wire::Hello accept();
  void hang_up() { channel_.reset(); }

  // Sends a Launch whose stdout and stderr end up in output().
  void send_launch(const wire::Launch& launch);
  template <typename Message>
  void send(const Message& message, const std::vector<int>& fds = {}) {
    check(channel_->send(message, fds));
  }
  // The next message, which must be of this type; an Exited on the way to another is kept.
  template <typename Message>
  Message expect() {
    wire::Frame frame = next();
    if (Message::k_type != wire::Type::exited)
      for (; frame.type == wire::Type::exited; frame = next()) exited_ = frame.decode<wire::Exited>().value();
    check_type(frame.type, Message::k_type);
    fds_ = std::move(frame.fds);
    auto message = frame.decode<Message>();
    check(message);
    return std::move(message).value();
  }
  // The descriptors that came with it.
  const std::vector<Fd>& fds() const { return fds_; }
  // Whether glue has closed the connection, waiting for it.
  bool closed();

  // The last one that came unasked for.
  const std::optional<wire::Exited>& exited() const { return exited_; }
  // Glue answers a Beat within this time, else the test fails; how long it took.
  Milliseconds beat(Milliseconds limit = std::chrono::seconds(5));
  // What it said last.
  const wire::Beat& beat_answer() const { return beat_answer_; }

  // A whole job.
  wire::JobEnded run(const wire::Launch& launch);
  wire::JobEnded run(std::vector<std::string> argv) { return run(launch_of(std::move(argv))); }
  wire::LaunchFailed fail(const wire::Launch& launch);
  // What the last job has written so far.
  std::string output() const;
  // Until the job has written this.
  void wait_for_output(const std::string& text);

 private:
  wire::Frame next(Milliseconds patience = std::chrono::seconds(30));
  template <typename T>
  void check(const Result<T>& result) {
    if (!result) give_up(result.error().message());
  }
  void check_type(wire::Type got, wire::Type wanted);
  [[noreturn]] void give_up(const std::string& why);

  Loop loop_;
  Fd listener_;
  std::unique_ptr<wire::Channel> channel_;
  std::vector<wire::Frame> frames_;
  std::vector<Fd> fds_;
  std::optional<wire::Exited> exited_;
  wire::Beat beat_answer_;
  bool closed_ = false;
  Fd output_;
};

// glue and its agent, connected; glue ends with them.
struct Session {
  FakeAgent agent;
  Child glue;
  explicit Session(const GlueOptions& options = {});
  ~Session();
  // Runs one job that must end with code 0; what it wrote.
  std::string output_of(const wire::Launch& launch);
  std::string output_of(std::vector<std::string> argv) { return output_of(launch_of(std::move(argv))); }
  // Tells glue to end and returns how it did.
  ExitStatus end(int signal);

 private:
  bool ended_ = false;
};

inline std::vector<std::string> shell(std::string script) {
  return {"/bin/sh", "-c", std::move(script)};
}

// Somebody else of the pod's, in a process of their own until the end of the test at the latest.
struct Neighbour {
  Child child;
  Neighbour(unsigned uid, const std::function<int()>& body)
      : child(Child::fork([&] {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (::setgid(uid) != 0 || ::setuid(uid) != 0) return 1;
                return body();
              }).value()) {}
  ExitStatus wait() { return child.wait().value().status; }
  void end() {
    (void)child.signal(SIGKILL);
    (void)child.wait();
  }
  ~Neighbour() { end(); }
};

// One process tells another, once.
class Pipe {
 public:
  Pipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) ::abort();
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  void tell() const { [[maybe_unused]] const auto written = ::write(write_.get(), "x", 1); }
  int writer() const { return write_.get(); }
  // False: nobody has, within 10 s.
  bool told() const {
    pollfd asked{read_.get(), POLLIN, 0};
    return ::poll(&asked, 1, 10'000) == 1;
  }

 private:
  Fd read_, write_;
};

// Processes in this PID namespace whose command line holds the text.
int processes_with(const std::string& text);

}  // namespace glidepod::glue::testing
