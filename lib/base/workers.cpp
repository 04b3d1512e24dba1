#include "lib/base/workers.hpp"

#include <sys/eventfd.h>

namespace glidepod {

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Workers::run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < limit_) {
    threads_.emplace_back([this] { work(); });
  } else {
    wake_.notify_one();
  }
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (stopping_) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds may take long to free
    lock.lock();
  }
}

Result<std::unique_ptr<Inbox>> Inbox::create(Loop& loop) {
  Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return Error::system("eventfd");
  const int fd = event.get();
  std::unique_ptr<Inbox> inbox(new Inbox(loop, std::move(event)));
  TRY(loop.watch(fd, EPOLLIN, [self = inbox.get()](std::uint32_t) { self->deliver(); }));
  return inbox;
}

void Inbox::post(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
  eventfd_write(event_.get(), 1);
}

void Inbox::deliver() {
  eventfd_t count = 0;
  eventfd_read(event_.get(), &count);
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (auto& call : calls) call();
}

}  // namespace glidepod
