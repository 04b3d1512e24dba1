#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/loop.hpp"
#include "podhost/pod_worker.hpp"
#include "podhost/workers.hpp"

namespace httplib {
struct Request;
struct Response;
}  // namespace httplib

namespace glidepod::podhost {

// Who is at the other end of a connection.
struct Caller {
  enum class Kind : std::uint8_t { admin, token_needed, pod };
  Kind kind = Kind::admin;
  std::string uid;  // of the pod
};

// A request's connection, for handlers that stream an answer.
struct Connection {
  Caller caller;
  int fd = -1;
  // Waits until other_fd is readable or this long; false once the client has gone or podhost stops.
  bool wait(int other_fd, Milliseconds limit) const;
  // What poll(2) is to look for on fd besides what it always does. The end of what a client says is not yet
  // its end: it may have shut down its own side, to listen. Over TCP the two look the same.
  short gone_events() const;
};

// HTTP/1.1 over any number of listening sockets: one thread a connection, of which there is a limit for all,
// for all but the admin's, and for each pod. A client that is too slow is cut off. Use it in the loop's
// thread.
class HttpServer : public PodSockets {
 public:
  using RequestHandler = std::function<void(const Connection&, const httplib::Request&, httplib::Response&)>;
  // Looks at a request's headers; an error is its answer, and its body is not read.
  using Admission = std::function<std::optional<kube::ApiError>(const Connection&, const httplib::Request&)>;

  HttpServer(Loop& loop, Admission admission, RequestHandler handler);
  ~HttpServer() override;

  Result<void> listen_unix(const std::string& path);
  // On 127.0.0.1; port 0 takes any. Returns the port.
  Result<int> listen_loopback(int port);

  Result<void> open(const std::string& uid, const std::string& path,
                    std::optional<std::int64_t> group) override;
  void close(const std::string& uid) override;

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
  std::unique_ptr<Engine> engine_;
  std::map<int, Listener> listeners_;
  std::mutex mutex_;
  std::map<int, Caller> connections_;  // by descriptor
  std::optional<Workers> threads_;
  Fd spare_;  // for when there are no more descriptors
};

}  // namespace glidepod::podhost
