#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/codec.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::wire {

// One received message, not yet decoded.
struct Frame {
  Type type{};
  std::string body;
  std::vector<Fd> fds;

  template <typename Message>
  Result<Message> decode() const {
    Message message;
    Reader reader(body);
    fields(reader, message);
    auto done = reader.finish();
    if (!done) return done.error();
    return message;
  }
};

// The longest message. An argument list and environment at the kernel's own limit (6 MiB) fit into it.
constexpr std::size_t k_longest_frame = std::size_t{8} << 20;
constexpr std::size_t k_most_fds = 4;

// Sends and receives frames over a connected Unix stream socket, on a Loop. Sending never blocks: what the
// socket does not take at once is kept until it does. The handlers may destroy the channel.
class Channel {
 public:
  struct Handlers {
    std::function<void(Frame)> frame;
    // The peer has closed the connection (an Error with code 0 and an empty context), or it sent something
    // wrong. No handler is called after this one.
    std::function<void(const Error&)> closed;
  };
  // longest: of the peer's messages; a longer one ends the connection.
  static Result<std::unique_ptr<Channel>> create(Loop& loop, Fd socket, Handlers handlers,
                                                 std::size_t longest = k_longest_frame);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The kernel duplicates the descriptors into the message; the caller keeps its own.
  template <typename Message>
  Result<void> send(const Message& message, const std::vector<int>& fds = {}) {
    Writer writer;
    fields(writer, message);
    return send_frame(Message::k_type, writer.take(), fds);
  }
  // Messages without descriptors between hold() and release() are kept and then sent in one piece, so that
  // the peer wakes only once.
  void hold() { held_ = true; }
  Result<void> release();
  // Blocks until the kernel has all messages, at most this long; for a program that is about to exit.
  Result<void> flush(Milliseconds limit = std::chrono::seconds(2));

  const Fd& socket() const { return socket_; }
  // Bytes that the peer has not taken yet.
  std::size_t unsent() const { return unsent_; }

 private:
  struct Outgoing {
    std::string bytes;
    std::size_t sent = 0;
    std::vector<Fd> fds;  // sent with the first byte
  };
  Channel(Loop& loop, Fd socket, Handlers handlers, std::size_t longest);
  Result<void> send_frame(Type type, const std::string& body, const std::vector<int>& fds);
  Result<void> write_soon();  // writes now what the socket takes, and the rest later
  Result<bool> write_some();  // true when nothing is left to write
  void on_events(std::uint32_t events);
  Result<bool> read_some();  // false when the peer has closed the connection
  Result<bool> next_frame(Frame* frame);

  Loop& loop_;
  Fd socket_;
  Handlers handlers_;
  std::size_t longest_;
  std::deque<Outgoing> outgoing_;
  std::size_t unsent_ = 0;
  bool held_ = false;
  std::string incoming_;
  std::deque<Fd> incoming_fds_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Whether a signal is worth sending behind what the peer has not taken yet. A job may signal its own
// `apptainer` without end; what ends it comes through all the same.
bool takes_signal(const Channel& channel, int number);

}  // namespace glidepod::wire
