#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/base/workers.hpp"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace glidepod::http {

struct Refusal;

// Who is at the other end of a connection.
struct Caller {
  enum class Kind : std::uint8_t {
    owner,    // by the socket that only who runs the server can open
    network,  // over TCP
    guest,    // by a socket made for one guest
  };
  Kind kind = Kind::owner;
  std::string guest;  // its name
};

// A request's connection, for handlers that stream an answer.
struct Connection {
  Caller caller;
  int fd = -1;
  // Waits until other_fd is readable, at most this long; false once the client has gone or the server stops.
  bool wait(int other_fd, Milliseconds limit) const;
  // The events that poll(2) is to look for on fd. A client that has shut down its own side may still listen,
  // so that alone is not its end. Over TCP the two look the same.
  short gone_events() const;
};

// HTTP/1.1 over any number of listening sockets: one thread a connection, of which there is a limit for all,
// for all but the owner's, and for each guest. A client that is too slow is cut off, one too many is turned
// away, also where there are no more descriptors. Use it in the loop's thread.
class Server {
 public:
  using Handler = std::function<void(const Connection&, const httplib::Request&, httplib::Response&)>;
  struct Settings {
    // Looks at a request's headers; a Refusal is its answer, and its body is not read. May be empty.
    std::function<std::optional<Refusal>(const Connection&, const httplib::Request&)> admit;
    // Called in the connection's thread with each request.
    Handler handle;
    // The body for a Refusal; without it, its message.
    std::function<void(const Refusal&, httplib::Response&)> refuse;
    std::size_t connections = 256;
    std::size_t not_owners = 192;  // so that guests cannot shut the owner out
    std::size_t each_guest = 16;
    enum class Keep : std::uint8_t { connections, nothing } keep = Keep::connections;  // after an answer
  };

  Server(Loop& loop, Settings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The owner's socket, mode 0600.
  Result<void> listen_unix(const std::string& path);
  // "HOST:PORT" with a numeric host, or ":PORT" for every address; port 0 takes any. Returns the port.
  Result<int> listen_tcp(const std::string& address);
  // A guest's socket, mode 0600, or 0660 with a group. Closing it ends the guest's connections.
  Result<void> listen_guest(const std::string& guest, const std::string& path, std::optional<gid_t> group);
  void close_guest(const std::string& guest);

  // Ends all connections and waits for their handlers.
  void stop();

 private:
  class Engine;
  struct Listener {
    Fd fd;
    Caller caller;
    std::string path;
  };
  Result<void> add(Listener listener);
  void accept(int listener_fd);
  void serve(Fd fd, const Caller& caller);

  Loop& loop_;
  std::size_t limit_, not_owners_, each_guest_;
  std::unique_ptr<Engine> engine_;
  std::map<int, Listener> listeners_;
  std::mutex mutex_;
  std::map<int, Caller> connections_;  // by descriptor
  std::optional<Workers> threads_;
  Fd spare_;  // closed and used when there are no more descriptors
};

}  // namespace glidepod::http
