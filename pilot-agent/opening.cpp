#include "pilot-agent/opening.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace glidepod::agent {
namespace {
// More than a pilot has slots: whoever asks for what hangs takes these, and no more.
constexpr int k_most_threads = 64;
}  // namespace

struct Opening::Answer {
  explicit Answer(int event_fd) : event(event_fd) {}
  Fd event;

  void give(Result<ImageSource> opened) {
    {
      const std::lock_guard lock(mutex);
      source = std::move(opened);
    }
    ::eventfd_write(event.get(), 1);
  }
  std::optional<Result<ImageSource>> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(source, std::nullopt);
  }

 private:
  std::mutex mutex;
  std::optional<Result<ImageSource>> source;
};

Result<std::unique_ptr<Opening>> Opening::begin(Loop& loop, Milliseconds patience, Open open,
                                                Handler handler) {
  static std::atomic<int> threads = 0;
  if (threads >= k_most_threads) return Error("too many images wait for a mount that hangs", EAGAIN);
  auto answer = std::make_shared<Answer>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!answer->event) return Error::system("eventfd");
  std::unique_ptr<Opening> opening(new Opening(loop, std::move(handler)));
  TRY(loop.watch(answer->event.get(), EPOLLIN, [self = opening.get()](std::uint32_t) {
    auto source = self->answer_->take();
    if (source) self->end(std::move(*source));
  }));
  opening->answer_ = answer;
  opening->timer_ = loop.after(patience, [self = opening.get()] {
    self->end(Error("the mount that it is on does not answer", ETIMEDOUT));
  });
  ++threads;
  std::thread([answer = std::move(answer), open = std::move(open)] {
    answer->give(open());
    --threads;
  }).detach();
  return opening;
}

Opening::~Opening() {
  loop_.cancel(timer_);
  if (answer_) loop_.forget(answer_->event.get());
}

void Opening::end(Result<ImageSource> source) {
  loop_.cancel(timer_);
  loop_.forget(answer_->event.get());
  if (const auto handler = std::exchange(handler_, {})) handler(std::move(source));  // this may be gone
}

}  // namespace glidepod::agent
