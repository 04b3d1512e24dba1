#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"

namespace glidepod {

// Runs blocking tasks in threads. There are as many threads as there ever were tasks at one time, up to a
// limit. Idle threads wait without waking. The destructor waits for the tasks under way and drops those that
// have not begun.
class Workers {
 public:
  explicit Workers(std::size_t limit) : limit_(limit) {}
  ~Workers();
  void run(std::function<void()> task);

 private:
  void work();
  std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Brings calls from any thread into a Loop's thread, in order.
class Inbox {
 public:
  // The loop must outlive it.
  static Result<std::unique_ptr<Inbox>> create(Loop& loop);
  ~Inbox() { loop_.forget(event_.get()); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  void post(std::function<void()> call);

 private:
  Inbox(Loop& loop, Fd event) : loop_(loop), event_(std::move(event)) {}
  void deliver();
  Loop& loop_;
  Fd event_;
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace glidepod
