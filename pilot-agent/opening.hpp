#pragma once

#include <functional>
#include <memory>

#include "lib/base/loop.hpp"
#include "pilot-agent/image_store.hpp"

namespace glidepod::agent {

// Opens an image where that may take for ever: on a mount that may hang. Destroying it takes the question
// back. The thread that waits ends when the mount answers, or with the process.
class Opening {
 public:
  using Open = std::function<Result<ImageSource>()>;
  using Handler = std::function<void(Result<ImageSource>)>;
  // `open` runs in a thread of its own, and may outlive all but what it holds. The handler is called once,
  // never from inside this call, and may destroy the opening. An Error of no answer within `patience` has the
  // code ETIMEDOUT.
  static Result<std::unique_ptr<Opening>> begin(Loop& loop, Milliseconds patience, Open open,
                                                Handler handler);
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  struct Answer;
  Opening(Loop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}
  void end(Result<ImageSource> source);

  Loop& loop_;
  Handler handler_;
  std::shared_ptr<Answer> answer_;  // the thread's as well
  Loop::TimerId timer_ = 0;
};

}  // namespace glidepod::agent
