#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "lib/base/loop.hpp"
#include "lib/http/request.hpp"

namespace glidepod::http {

// Something under way; destroying it ends it, and no handler is called any more. Handlers may do so.
class Operation {
 public:
  virtual ~Operation() = default;
};

// Single HTTP/1.1 requests on a Loop, many at a time. Between requests it sets no timer.
class Transport {
 public:
  struct Handlers {
    // If set, takes the body of a 200 answer as it comes.
    std::function<void(std::string_view)> data;
    // Once, at the end; an Error with a Lost if there was no whole answer.
    std::function<void(Result<Response>)> done;
  };

  // The Loop must outlive it, and it must outlive its operations.
  static Result<std::unique_ptr<Transport>> create(Loop& loop);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  std::unique_ptr<Operation> start(Request request, Handlers handlers);
  Loop& loop() { return loop_; }
  // 0 to 1, for pauses.
  double random();

 private:
  class Call;
  struct Transfer;
  struct Curl;
  explicit Transport(Loop& loop);
  void act(int fd, int events);
  void deliver();
  void set_timer(long milliseconds);

  Loop& loop_;
  std::unique_ptr<Curl> curl_;
  Loop::TimerId timer_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint64_t random_state_;
  std::map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace glidepod::http
