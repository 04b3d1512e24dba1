#include "tests/apptainer/small_agent.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glidepod::apptainer {

Pipe::Pipe() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  reader.reset(ends[0]);
  writer.reset(ends[1]);
}

std::string Pipe::take() {
  writer.reset();
  return read_all(reader, "pipe", 1 << 20).value();
}

SmallAgent::SmallAgent() {
  REQUIRE(::chmod(folder_.path.c_str(), 0755) == 0);
  socket_ = folder_.path + "/exec.sock";
  listener_ = wire::listen_at(socket_, 0666).value();
}

SmallAgent::~SmallAgent() {
  if (child_) {
    (void)child_->signal(SIGKILL);
    (void)child_->wait();
  }
}

void SmallAgent::start(const Start& start) {
  bind_.reset();
  fds_.clear();
  signals_.clear();
  out_ = Pipe();
  err_ = Pipe();
  std::vector<std::string> environment = start.environment;
  environment.push_back("TEST_EXEC_SOCKET=" + socket_);
  std::vector<char*> argv{const_cast<char*>(start.name.c_str())}, envp;
  for (const auto& argument : start.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  for (const auto& variable : environment) envp.push_back(const_cast<char*>(variable.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  child_ = Child::fork([&] {
             if (start.stdin_fd >= 0) ::dup2(start.stdin_fd, STDIN_FILENO);
             ::dup2(out_.writer.get(), STDOUT_FILENO);
             ::dup2(err_.writer.get(), STDERR_FILENO);
             if (start.in_child) start.in_child();
             ::execve(start.program.c_str(), argv.data(), envp.data());
             return 111;
           }).value();
  out_.writer.reset();
  err_.writer.reset();
}

void SmallAgent::wait_until(const std::function<bool()>& done) {
  while (!done()) {
    const auto before = std::chrono::steady_clock::now();
    REQUIRE(loop_.run_once(std::chrono::seconds(20)).ok());
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() - before < std::chrono::seconds(19), "nothing happens");
  }
}

Fd SmallAgent::accept() {
  pollfd wait{.fd = listener_.get(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&wait, 1, 20000) == 1);
  Fd connection = wire::accept_from(listener_).value();
  peer_ = wire::peer_of(connection).value();
  return connection;
}

const wire::Bind& SmallAgent::bind() {
  bool closed = false;
  channel_ = wire::Channel::create(loop_, accept(),
                                   {[this](wire::Frame frame) { on_frame(std::move(frame)); },
                                    [&](const Error&) { closed = true; }})
                 .value();
  wait_until([&] { return bind_ || closed; });
  REQUIRE(bind_);
  return *bind_;
}

void SmallAgent::on_frame(wire::Frame frame) {
  if (frame.type == wire::Type::signal) {
    signals_.push_back(frame.decode<wire::Signal>()->number);
    return;
  }
  REQUIRE(frame.type == wire::Type::bind);
  REQUIRE_FALSE(bind_);
  bind_ = frame.decode<wire::Bind>().value();
  fds_ = std::move(frame.fds);
}

int SmallAgent::next_signal() {
  wait_until([&] { return !signals_.empty(); });
  const int number = signals_.front();
  signals_.erase(signals_.begin());
  return number;
}

void SmallAgent::answer(const ExitStatus& status, const wire::Ran& ran) {
  REQUIRE(channel_->send(wire::Ended{status, ran}).ok());
}

void SmallAgent::fail(wire::Fault fault, const std::string& message) {
  REQUIRE(channel_->send(wire::Failed{fault, message}).ok());
}

void SmallAgent::vanish() {
  channel_.reset();
}

void SmallAgent::stop_listening() {
  listener_.reset();
}

SmallAgent::Ran SmallAgent::ran() {
  fds_.clear();  // among them the pipes' writing ends
  pollfd wait{.fd = child_->pidfd().get(), .events = POLLIN, .revents = 0};
  REQUIRE_MESSAGE(::poll(&wait, 1, 20000) == 1, "the program does not end");
  Ran ran{child_->wait()->status, out_.take(), err_.take()};
  child_.reset();
  channel_.reset();
  return ran;
}

SmallAgent::Ran SmallAgent::run(const Start& how, const ExitStatus& status) {
  start(how);
  bind();
  answer(status);
  return ran();
}

}  // namespace glidepod::apptainer
