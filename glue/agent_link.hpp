#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// The connection to the pilot's agent. It waits for the agent's socket to appear, says Hello, and does so
// again whenever the connection was lost. Without a connection it sleeps in inotify. If the node has no
// inotify left, it looks once a second.
class AgentLink {
 public:
  struct Handlers {
    std::function<void(wire::Frame)> frame;
    // Called when the connection was lost. False: the next connection waits for resume().
    std::function<bool()> lost;
    // Called when even waiting is impossible, for instance because there is no run directory.
    std::function<void(Error)> failed;
  };
  AgentLink(Loop& loop, std::string run_directory, wire::Hello hello, Handlers handlers);
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  void start();

  // Looks for the next connection, after lost() has returned false.
  void resume();

  // Without a connection the message is dropped: a later agent knows nothing of this job.
  template <typename Message>
  void send(const Message& message, const std::vector<int>& fds = {}) {
    if (channel_) (void)channel_->send(message, fds);  // reading notices a peer that is gone
  }
  // What is sent between hold() and release() goes in one piece.
  void hold() {
    if (channel_) channel_->hold();
  }
  void release() {
    if (channel_) (void)channel_->release();
  }
  // Hangs up for good, once the kernel has all messages; blocks for that, but only for a moment.
  void leave();
  // Drops the connection, for instance after a wrong message.
  void drop(std::string_view reason);

 private:
  Result<void> connect();
  void reconnect();
  Result<bool> try_connect();
  Result<void> watch_directory();
  void on_directory();
  void on_lost(const Error& reason);
  void retry_after(Milliseconds delay);

  Loop& loop_;
  std::string run_directory_;
  wire::Hello hello_;
  Handlers handlers_;
  std::unique_ptr<wire::Channel> channel_;
  Fd inotify_;
  SteadyTime connected_at_;
  Loop::TimerId retry_ = 0;
  int short_connections_ = 0;
  bool waiting_ = false;  // the log has said that glue waits
  bool left_ = false;
  bool held_ = false;  // the connection was lost, and resume() has not been called
};

}  // namespace glidepod::glue
