#include "tests/glue/fake_agent.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "glue/processes.hpp"
#include "glue/serve.hpp"
#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"

namespace glidepod::glue::testing {

namespace {

constexpr Milliseconds k_patience = std::chrono::seconds(30);

void take_rights_of_a_pod() {
  constexpr std::array<cap_value_t, 3> kept = {CAP_SETUID, CAP_SETGID, CAP_KILL};
  for (cap_value_t capability = 0; capability < cap_max_bits(); ++capability)
    if (std::find(kept.begin(), kept.end(), capability) == kept.end()) cap_drop_bound(capability);
  cap_t caps = cap_init();
  cap_set_flag(caps, CAP_PERMITTED, kept.size(), kept.data(), CAP_SET);
  cap_set_flag(caps, CAP_EFFECTIVE, kept.size(), kept.data(), CAP_SET);
  cap_set_proc(caps);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void take_no_rights() {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(k_user, k_user, k_user) != 0 ||
      ::setresuid(k_user, k_user, k_user) != 0)
    ::_exit(126);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

}  // namespace

Child start_glue(const GlueOptions& options) {
  auto child = Child::fork([&] {
    if (options.rights == Rights::none)
      take_no_rights();
    else
      take_rights_of_a_pod();
    auto environment = options.environment;
    for (const char* fixed : {"PATH=/usr/bin:/bin", "HOME=/root", "OF_THE_IMAGE=yes", "GLIDEPOD_SECRET=1",
                              "KUBERNETES_PORT=tcp://10.0.0.1:443"})
      environment.emplace_back(fixed);
    // Which mutant the program is to be (tests/mutants).
    if (const char* mutant = std::getenv("GLIDEPOD_MUTANT"); mutant != nullptr)
      environment.insert(environment.begin(), fmt::format("GLIDEPOD_MUTANT={}", mutant));
    std::vector<char*> pointers;
    pointers.reserve(environment.size() + 1);
    for (auto& entry : environment) pointers.push_back(entry.data());
    pointers.push_back(nullptr);
    if (options.close_standard_descriptors)
      for (int fd = 0; fd < 3; ++fd) ::close(fd);
    if (options.stderr_fd >= 0) ::dup2(options.stderr_fd, 2);
    if (options.prepare) options.prepare();
    if (options.limits) {
      environ = pointers.data();
      ServerOptions server;
      server.container = "payload-0";
      options.limits(server);
      take_over_signals();
      const auto code = serve(std::move(server), options.rights == Rights::none);
      return code ? code.value() : 1;
    }
    const char* unprivileged = options.rights == Rights::none ? "--unprivileged" : nullptr;
    const char* argv[] = {"glue", "--container", "payload-0", unprivileged, nullptr};
    ::execve("/glidepod/bin/glue", const_cast<char**>(argv), pointers.data());
    return 127;
  });
  REQUIRE(child.ok());
  return std::move(child).value();
}

void fail_system_call(int number, int code) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<unsigned>(code)), number, 0) != 0 ||
      seccomp_load(filter) != 0)
    ::_exit(126);
}

void fail_system_call(int number, int code, unsigned argument, std::uint64_t at_least) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  const scmp_arg_cmp compare{argument, SCMP_CMP_GE, at_least, 0};
  if (seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(static_cast<unsigned>(code)), number, 1, &compare) != 0 ||
      seccomp_load(filter) != 0)
    ::_exit(126);
}

wire::Launch launch_of(std::vector<std::string> argv) {
  static std::uint64_t last_job = 0;
  wire::Launch launch;
  launch.job = ++last_job;
  launch.argv = std::move(argv);
  launch.cwd = k_sandbox;
  launch.home = k_sandbox;
  launch.user_name = "slot1";
  launch.uid = launch.gid = k_user;
  launch.groups = {k_tracking_group};
  return launch;
}

FakeAgent::FakeAgent() : loop_(Loop::create().value()) {
  auto listener = wire::listen_at(k_socket, 0600);
  REQUIRE(listener.ok());
  listener_ = std::move(listener).value();
}

FakeAgent::~FakeAgent() {
  ::unlink(k_socket);
}

void FakeAgent::give_up(const std::string& why) {
  throw std::runtime_error(why);
}

wire::Hello FakeAgent::accept() {
  bool waiting = false;
  check(loop_.watch(listener_.get(), EPOLLIN, [&](std::uint32_t) { waiting = true; }));
  for (int i = 0; i < 2 && !waiting; ++i) check(loop_.run_once(k_patience));
  loop_.forget(listener_.get());
  auto socket = wire::accept_from(listener_);
  check(socket);
  if (!socket.value()) give_up("glue did not connect");
  frames_.clear();
  closed_ = false;
  auto channel = wire::Channel::create(loop_, std::move(socket).value(),
                                       {[this](wire::Frame frame) { frames_.push_back(std::move(frame)); },
                                        [this](const Error&) { closed_ = true; }});
  check(channel);
  channel_ = std::move(channel).value();
  return expect<wire::Hello>();
}

wire::Frame FakeAgent::next(Milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (frames_.empty() && !closed_ && std::chrono::steady_clock::now() < deadline)
    check(loop_.run_once(patience));
  if (frames_.empty()) give_up(closed_ ? "glue has closed the connection" : "no message came");
  wire::Frame frame = std::move(frames_.front());
  frames_.erase(frames_.begin());
  return frame;
}

bool FakeAgent::closed() {
  const auto deadline = std::chrono::steady_clock::now() + k_patience;
  while (!closed_ && std::chrono::steady_clock::now() < deadline) check(loop_.run_once(k_patience));
  return closed_;
}

void FakeAgent::check_type(wire::Type got, wire::Type wanted) {
  if (got != wanted)
    give_up(fmt::format("message of type {} instead of {}", static_cast<unsigned>(got),
                        static_cast<unsigned>(wanted)));
}

void FakeAgent::send_launch(const wire::Launch& launch) {
  // As the starter opens it: of the job's folders, in this container too.
  constexpr const char* output = "/glidepod/scratch/output";
  ::unlink(output);
  output_.reset(::open(output, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  REQUIRE(output_);
  const Fd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<int> fds = {input.get(), output_.get(), output_.get()};
  const Fd program(launch.program_attached ? ::open("/job", O_RDONLY | O_CLOEXEC) : -1);
  if (program) fds.push_back(program.get());
  check(channel_->send(launch, fds));
}

wire::JobEnded FakeAgent::run(const wire::Launch& launch) {
  send_launch(launch);
  CHECK(expect<wire::Started>().job == launch.job);
  auto ended = expect<wire::JobEnded>();
  CHECK(ended.job == launch.job);
  REQUIRE(exited_.has_value());
  CHECK(exited_->job == launch.job);
  CHECK(exited_->status == ended.status);
  CHECK(exited_->ended_ns == ended.ended_ns);
  return ended;
}

Milliseconds FakeAgent::beat(Milliseconds limit) {
  static std::uint64_t last = 0;
  const auto before = std::chrono::steady_clock::now();
  send(wire::Beat{++last});
  // Others may come first, and are still to be expected.
  std::vector<wire::Frame> others;
  while (true) {
    wire::Frame frame = next(limit);
    if (frame.type != wire::Type::beat) {
      others.push_back(std::move(frame));
      continue;
    }
    beat_answer_ = frame.decode<wire::Beat>().value();
    if (beat_answer_.number != last) give_up("a beat of another number");
    frames_.insert(frames_.begin(), std::make_move_iterator(others.begin()),
                   std::make_move_iterator(others.end()));
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - before);
  }
}

wire::LaunchFailed FakeAgent::fail(const wire::Launch& launch) {
  send_launch(launch);
  auto failed = expect<wire::LaunchFailed>();
  CHECK(failed.job == launch.job);
  return failed;
}

std::string FakeAgent::output() const {
  struct stat info {};
  ::fstat(output_.get(), &info);
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t got = ::pread(output_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

void FakeAgent::wait_for_output(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + k_patience;
  while (output().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) give_up("the job did not write " + text);
    check(loop_.run_once(Milliseconds(1)));
  }
}

Session::Session(const GlueOptions& options) : glue(start_glue(options)) {
  const auto hello = agent.accept();
  CHECK(hello.container == "payload-0");
  CHECK(hello.protocol == wire::k_protocol);
}

Session::~Session() {
  if (!ended_) end(SIGKILL);
}

ExitStatus Session::end(int signal) {
  ended_ = true;
  (void)glue.signal(signal);
  const auto ended = glue.wait();
  return ended ? ended->status : ExitStatus::exited(-1);
}

std::string Session::output_of(const wire::Launch& launch) {
  const auto ended = agent.run(launch);
  std::string output = agent.output();
  INFO(output);
  CHECK(ended.status == ExitStatus::exited(0));
  return output;
}

int processes_with(const std::string& text) {
  int count = 0;
  const auto all = all_processes();
  REQUIRE(all.ok());
  for (const auto& process : all.value()) {
    const auto line = read_file(fmt::format("/proc/{}/cmdline", process.pid));
    if (line && line.value().find(text) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace glidepod::glue::testing
