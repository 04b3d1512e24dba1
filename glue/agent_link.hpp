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

// The connection to the pilot's agent: waits for its socket to appear, says Hello, and does so again whenever
// the agent was lost. Without a connection it sleeps in inotify, or, where the node has none left, looks once
// a second.
class AgentLink {
 public:
  struct Handlers {
    std::function<void(wire::Frame)> frame;
    // Before it looks for the next connection; false: not before resume().
    std::function<bool()> lost;
    std::function<void(Error)> failed;  // it cannot even wait
  };
  AgentLink(Loop& loop, std::string run_directory, std::string container, Handlers handlers);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Fails if waiting is impossible, as when there is no run directory.
  Result<void> start();

  // Ready for the next agent after all.
  void resume();

  // What nobody listens to is dropped: the agent knows nothing of this job any more.
  template <typename Message>
  void send(const Message& message, const std::vector<int>& fds = {}) {
    if (channel_) (void)channel_->send(message, fds);  // a peer that is gone is noticed by reading
  }
  // What is sent between the two goes in one piece.
  void hold() {
    if (channel_) channel_->hold();
  }
  void release() {
    if (channel_) (void)channel_->release();
  }
  // Blocks until the kernel has all of it, for a moment at most.
  void flush();
  // Takes the peer for lost, as after nonsense from it.
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
  std::string container_;
  Handlers handlers_;
  std::unique_ptr<wire::Channel> channel_;
  Fd inotify_;
  SteadyTime connected_at_;
  Loop::TimerId retry_ = 0;
  int short_connections_ = 0;
  bool waiting_ = false;  // the log says already that it waits
  bool held_ = false;     // lost, and not to be looked for yet
};

}  // namespace glidepod::glue
