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
class Certificate;

// Who is at the other end of a connection.
struct Caller {
  enum class Kind : std::uint8_t {
    owner,    // came by the socket that only the user who runs the server can open
    network,  // came over TCP
    guest,    // came by a socket that was made for one guest
  };
  Kind kind = Kind::owner;
  std::string guest;  // the guest's name
};

// A request's connection, for handlers that stream an answer.
struct Connection {
  Caller caller;
  int fd = -1;
  // Waits until other_fd is readable, at most this long. Returns false once the client has gone or the server
  // stops.
  bool wait(int other_fd, Milliseconds limit) const;
  // The events that poll(2) is to look for on fd. A client that has shut down its own side may still listen,
  // so that alone does not mean that it has gone. Over TCP the two look the same.
  short gone_events() const;
};

// The body of a PUT request, for a handler that takes it as it comes.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual std::uint64_t size() const = 0;
  // Has the client send the body, and hands it on piece by piece. An Error of the sink ends the reading. It
  // is to be called once, or never: a client that waits for "100 Continue" then sends nothing.
  virtual Result<void> read(const std::function<Result<void>(std::string_view)>& sink) = 0;
};

// HTTP/1.1 over any number of listening sockets, with one thread for each connection. The number of
// connections is limited in all, for all but the owner, and for each guest. A client that is too slow is cut
// off. A client too many is turned away, even when there are no more descriptors. Use it in the loop's
// thread.
class Server {
 public:
  using Handler = std::function<void(const Connection&, const httplib::Request&, httplib::Response&)>;
  struct Settings {
    // Looks at a request's headers. If it returns a Refusal, that is the answer, and the body is not read.
    // May be empty.
    std::function<std::optional<Refusal>(const Connection&, const httplib::Request&)> admit;
    // Called in the connection's thread with each request.
    Handler handle;
    // Writes the body for a Refusal. Without it the body is the Refusal's message.
    std::function<void(const Refusal&, httplib::Response&)> refuse;
    // If set, PUT requests are this handler's, with bodies of at most longest_upload bytes.
    std::function<void(const Connection&, const httplib::Request&, Upload&, httplib::Response&)> upload;
    std::uint64_t longest_upload = 0;
    // If set, what comes over TCP is TLS. It must outlive the server.
    Certificate* certificate = nullptr;
    std::size_t connections = 256;
    std::size_t not_owners = 192;  // so that guests cannot shut the owner out
    std::size_t each_guest = 16;
    enum class Keep : std::uint8_t { connections, nothing } keep = Keep::connections;  // after an answer
  };

  Server(Loop& loop, Settings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens on the owner's socket, with mode 0600.
  Result<void> listen_unix(const std::string& path);
  // Listens on "HOST:PORT" with a numeric host, or on ":PORT" for every address. Port 0 takes any port.
  // Returns the port.
  Result<int> listen_tcp(const std::string& address);
  // Listens on a guest's socket, with mode 0600, or 0660 with a group. Closing it ends the guest's
  // connections.
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
  void answer_all(const Connection& connection);

  Loop& loop_;
  std::size_t limit_, not_owners_, each_guest_;
  Certificate* certificate_;
  std::unique_ptr<Engine> engine_;
  std::map<int, Listener> listeners_;
  std::mutex mutex_;
  std::map<int, Caller> connections_;  // by descriptor
  std::optional<Workers> threads_;
  Fd spare_;  // kept so that its number can be used when there are no more descriptors
};

}  // namespace glidepod::http
