#include "podhost/runtime/podman_service.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/log.hpp"

namespace glidepod::podhost {
namespace {

constexpr Milliseconds k_restart_delay{1000};

// Podman takes its socket the way systemd hands one over: descriptor 3, named by LISTEN_PID and LISTEN_FDS.
constexpr const char* k_hand_over = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";

}  // namespace

PodmanService::~PodmanService() {
  stop();
}

Result<void> PodmanService::start() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof address.sun_path) return error("socket path too long: {}", socket_);
  std::copy(socket_.begin(), socket_.end(), address.sun_path);
  listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener_) return Error::system("socket");
  unlink(socket_.c_str());
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(socket_.c_str(), 0600) != 0 || listen(listener_.get(), 128) != 0) {
    return Error::system("listen on {}", socket_);
  }
  return spawn();
}

Result<void> PodmanService::spawn() {
  Child::Options options;
  options.argv = {"/bin/sh", "-c", k_hand_over, "podhost-podman"};
  options.argv.insert(options.argv.end(), command_.begin(), command_.end());
  for (const auto* word : {"system", "service", "--time", "0"}) options.argv.emplace_back(word);
  options.stdin_fd = listener_.get();
  options.parent_death_signal = SIGTERM;
  spawned_ = std::chrono::steady_clock::now();
  child_ = TRY(Child::spawn(options).in("start podman"));
  spdlog::info("event=podman_started pid={}", child_->pid());
  return loop_.watch(child_->pidfd().get(), EPOLLIN, [this](std::uint32_t) { ended(); });
}

void PodmanService::ended() {
  loop_.forget(child_->pidfd().get());
  const auto end = child_->wait();
  const std::string how = end ? end.value().status.to_string() : end.error().message();
  spdlog::warn("event=podman_ended status={}", glidepod::quoted(how));
  child_.reset();
  on_end_(how);
  const bool ran_long = std::chrono::steady_clock::now() - spawned_ > 10 * k_restart_delay;
  timer_ = loop_.after(ran_long ? Milliseconds(0) : k_restart_delay, [this] { start_again(); });
}

void PodmanService::start_again() {
  timer_ = 0;
  const auto spawned = spawn();
  if (spawned) return;
  spdlog::error("event=podman_not_started error={}", glidepod::quoted(spawned.error().message()));
  if (child_) {  // which nobody watches
    static_cast<void>(child_->signal(SIGKILL));
    static_cast<void>(child_->wait());
    child_.reset();
  }
  timer_ = loop_.after(k_restart_delay, [this] { start_again(); });
}

void PodmanService::stop() {
  if (timer_) loop_.cancel(std::exchange(timer_, 0));
  if (!child_) return;
  loop_.forget(child_->pidfd().get());
  static_cast<void>(child_->signal(SIGTERM));
  static_cast<void>(child_->wait());
  child_.reset();
  listener_.reset();
  unlink(socket_.c_str());
}

}  // namespace glidepod::podhost
