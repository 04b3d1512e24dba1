#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/http/server.hpp"

namespace glidepod::http {

// Answers GET and HEAD with short texts, for probes and Prometheus. The handler is called in the Loop's own
// thread, so it may look at whatever the loop looks at.
class StatusServer {
 public:
  struct Answer {
    int status = 404;
    std::string body;
    std::string type = "text/plain; version=0.0.4; charset=utf-8";  // as Prometheus wants it
    std::string tag = {};  // the ETag: a client that has this version already gets no body
    std::vector<std::pair<std::string, std::string>> headers = {};
  };
  using Handler = std::function<Answer(const std::string& path)>;

  // address: as in Server::listen_tcp(). The loop must outlive the server.
  static Result<std::unique_ptr<StatusServer>> create(Loop& loop, const std::string& address,
                                                      Handler handler);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  int port() const { return port_; }

 private:
  struct Questions;
  StatusServer() = default;

  std::shared_ptr<Questions> questions_;
  std::unique_ptr<Inbox> inbox_;
  std::unique_ptr<Server> server_;
  int port_ = 0;
};

}  // namespace glidepod::http
