#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"

namespace glidepod::kube {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::string unix_socket;  // empty: the URL's host
  std::string ca_file;      // empty: the system's
  std::vector<std::string> headers;
  std::string body;
  Milliseconds timeout{0};  // 0: none, for a stream
  std::size_t longest_body = std::size_t{8} << 20;
  std::vector<std::string> wanted_headers;  // of the answer
  // If set, is asked before every connection, once the name is looked up; what it refuses is not contacted.
  std::function<bool(const sockaddr& address)> accepts;
};

struct HttpResponse {
  int status = 0;
  std::string body;  // empty where a data handler took it
  // Those wanted that there are, by the name they were wanted by; several of one name are joined by ", ".
  std::map<std::string, std::string, std::less<>> headers;
  std::optional<std::chrono::seconds> retry_after;
};

// HTTP/1.1 requests on a Loop, many at a time. Between requests it sets no timer.
class Http {
 public:
  struct Handlers {
    // If set, takes the body of a 200 answer as it comes.
    std::function<void(std::string_view)> data;
    // Once, at the end; an Error if there was no whole answer. Its code is EMSGSIZE if the answer was too
    // long, EACCES if no address was acceptable.
    std::function<void(Result<HttpResponse>)> done;
  };
  // A request under way; destroying it cancels it, and no handler is called any more. Handlers may do so.
  class Call {
   public:
    Call(Http& http, std::uint64_t id) : http_(http), id_(id) {}
    ~Call() { http_.cancel(id_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Http& http_;
    std::uint64_t id_;
  };

  // The Loop must outlive it, and it must outlive its calls.
  static Result<std::unique_ptr<Http>> create(Loop& loop);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  std::unique_ptr<Call> start(HttpRequest request, Handlers handlers);

 private:
  struct Transfer;
  struct Curl;
  explicit Http(Loop& loop);
  void cancel(std::uint64_t id);
  void act(int fd, int events);
  void deliver();
  void set_timer(long milliseconds);

  Loop& loop_;
  std::unique_ptr<Curl> curl_;
  Loop::TimerId timer_ = 0;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace glidepod::kube
