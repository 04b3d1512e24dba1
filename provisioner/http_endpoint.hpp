#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/loop.hpp"

namespace glidepod::provisioner {

// Answers GET and HEAD over HTTP, one request a connection, for probes and Prometheus. Clients that are slow,
// too many, or do not stop talking are cut off. Use it in the loop's thread.
class HttpEndpoint {
 public:
  struct Answer {
    int status = 404;
    std::string body;
  };
  using Handler = std::function<Answer(std::string_view path)>;

  // address is "HOST:PORT" with a numeric host, or ":PORT" for every address; port 0 takes any. The loop must
  // outlive it.
  static Result<std::unique_ptr<HttpEndpoint>> create(Loop& loop, const std::string& address,
                                                      Handler handler);
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;
  int port() const { return port_; }

 private:
  struct Connection {
    Fd fd;
    std::string in, out;
    Loop::TimerId timer = 0;
  };
  HttpEndpoint(Loop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}
  Result<void> listen(const std::string& address);
  void accept();
  void act(int fd, std::uint32_t events);
  void read(int fd);
  void write(int fd);
  void close(int fd);

  Loop& loop_;
  Handler handler_;
  Fd listener_;
  int port_ = 0;
  std::map<int, Connection> connections_;
};

}  // namespace glidepod::provisioner
