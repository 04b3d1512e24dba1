#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "lib/base/loop.hpp"
#include "lib/http/request.hpp"

namespace glidepod::http {

// A request or task under way. Destroying the object ends it, and its handlers are not called any more. A
// handler may destroy its own Operation.
class Operation {
 public:
  virtual ~Operation() = default;
};

// Makes single HTTP/1.1 requests on a Loop, many at a time. Between requests it sets no timer.
class Transport {
 public:
  struct Handlers {
    // If set, takes the body of a 200 answer as it comes.
    std::function<void(std::string_view)> data;
    // Called once, at the end. If there was no whole answer, it gets an Error with a Lost.
    std::function<void(Result<Response>)> done;
  };

  // The Loop must outlive it, and it must outlive its operations.
  static Result<std::unique_ptr<Transport>> create(Loop& loop);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  std::unique_ptr<Operation> start(Request request, Handlers handlers);
  Loop& loop() { return loop_; }
  // A random number from 0 to 1, for pauses.
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
