#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/loop.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

namespace glidepod::apptainer {

// A pipe; what a child wrote into it is read once the writing ends are closed.
struct Pipe {
  Fd reader, writer;
  Pipe();
  std::string take();
};

// An agent for one caller at a time, in this process: it listens at a socket of its own folder, takes a Bind
// and does what the test tells it.
class SmallAgent {
 public:
  SmallAgent();
  ~SmallAgent();

  // What a run left behind.
  struct Ran {
    ExitStatus status;
    std::string out, err;
  };
  struct Start {
    std::vector<std::string> arguments{"exec", "-C", "docker://image", "true"};
    std::vector<std::string> environment;
    std::string program = APPTAINER_PROGRAM;
    std::string name = "apptainer";  // it is called by
    std::function<void()> in_child;  // just before exec
    int stdin_fd = -1;
  };
  // Starts the program with pipes as output and error.
  void start(const Start& start);
  void start() { start(Start{}); }
  // Waits for the caller's Bind.
  const wire::Bind& bind();
  // Waits for the caller's next Signal.
  int next_signal();
  void answer(const ExitStatus& status, const wire::Ran& ran = {});
  void fail(wire::Fault fault, const std::string& message);
  // Closes the connection.
  void vanish();
  // Waits for the caller's end.
  Ran ran();
  // A whole run that ends so.
  Ran run(const Start& start, const ExitStatus& status);

  // Accepts the caller without reading from it.
  Fd accept();
  void stop_listening();

  const Child& child() const { return *child_; }
  const std::vector<Fd>& fds() const { return fds_; }
  const std::string& folder() const { return folder_.path; }
  const std::string& socket() const { return socket_; }
  bool was_called() const { return wire::accept_from(listener_).value().valid(); }
  const wire::Peer& peer() const { return peer_; }

 private:
  void wait_until(const std::function<bool()>& done);
  void on_frame(wire::Frame frame);

  TemporaryFolder folder_;
  std::string socket_;
  Loop loop_ = Loop::create().value();
  Fd listener_;
  std::unique_ptr<wire::Channel> channel_;
  wire::Peer peer_;
  std::optional<wire::Bind> bind_;
  std::vector<Fd> fds_;
  std::vector<int> signals_;
  std::optional<Child> child_;
  Pipe out_, err_;
};

}  // namespace glidepod::apptainer
