#include "lib/base/loop.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <array>

namespace glidepod {

Result<Loop> Loop::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return Error::system("epoll_create1");
  return Loop(std::move(epoll));
}

SteadyTime Loop::now() {
  return std::chrono::steady_clock::now();
}

Result<void> Loop::watch(int fd, std::uint32_t events, Handler handler) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return Error::system("watch descriptor {}", fd);
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  return {};
}

Result<void> Loop::change(int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0)
    return Error::system("change descriptor {}", fd);
  return {};
}

void Loop::forget(int fd) {
  if (handlers_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Result<void> Loop::on_signals(const std::vector<int>& signals,
                              std::function<void(const signalfd_siginfo&)> handler) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals) sigaddset(&set, number);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return Error::system("block signals");
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error::system("signalfd");
  signals_ = std::move(fd);
  return watch(signals_.get(), EPOLLIN, [this, handler = std::move(handler)](std::uint32_t) {
    // One read in each round: signals that come faster than they are handled must not keep the rest waiting.
    std::array<signalfd_siginfo, 16> infos;
    const ssize_t got = ::read(signals_.get(), infos.data(), sizeof infos);
    for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof infos[0]; ++i)
      handler(infos[i]);
  });
}

Result<void> Loop::run_once(Milliseconds limit) {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), next_timeout(limit));
  if (count < 0 && errno != EINTR) return Error::system("epoll_wait");
  watch_turn(longest_turn_);
  for (int i = 0; i < count; ++i) {
    // The handler is looked up anew, since an earlier handler of this round may have removed it. The copy
    // outlives a handler that removes itself.
    const auto found = handlers_.find(events[i].data.fd);
    if (found == handlers_.end()) continue;
    const auto handler = found->second;
    (*handler)(events[i].events);
  }
  run_due_timers();
  watch_turn(Milliseconds(0));
  return {};
}

void Loop::watch_turn(Milliseconds limit) const {
  if (longest_turn_.count() == 0) return;
  const itimerval timer{{}, {limit.count() / 1000, limit.count() % 1000 * 1000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace glidepod
