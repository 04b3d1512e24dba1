#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

namespace glidepod::kube {

// An HTTP server on a Unix socket, in the test's own loop, that does what a test tells it for each request.
class FakeServer {
 public:
  struct Request {
    int connection = -1;  // for send()
    std::string method, target, headers, body;
  };
  // Bytes to send at once, and whether to close then.
  struct Reply {
    std::string bytes;
    bool close = false;
  };
  explicit FakeServer(Loop& loop);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // Called with each whole request.
  std::function<Reply(const Request&)> on_request;
  // Called with the headers of a request that waits for "100 Continue"; without it, it gets that.
  std::function<Reply(const Request&)> on_expect;
  std::vector<Request> requests;
  // More bytes for the connection that sent the newest request, or for any; one that is gone is no error.
  void send(const std::string& bytes) { send(newest_, bytes); }
  void send(int connection, const std::string& bytes);

  static Reply json(int status, const std::string& body, const std::string& headers = {});
  // The beginning of a stream, and a piece of it.
  static Reply stream();
  static std::string chunk(const std::string& data);

  const std::string& folder() const { return folder_.path; }
  std::string socket() const { return folder_.path + "/api.sock"; }

 private:
  void accept();
  void read(int fd);
  void close(int fd);

  Loop& loop_;
  TemporaryFolder folder_;
  Fd listener_;
  struct Connection {
    Fd fd;
    std::string incoming;
    bool told = false;  // to go on
  };
  std::map<int, Connection> connections_;
  int newest_ = -1;
};

}  // namespace glidepod::kube
