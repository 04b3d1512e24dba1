#include "glue/agent_link.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "glue/events.hpp"
#include "glue/folder_watch.hpp"
#include "lib/wire/socket.hpp"

namespace glidepod::glue {

namespace {
// An agent that hangs up at once, refusing this glue's version say, is not asked again in a tight loop.
constexpr auto k_short_connection = std::chrono::seconds(5);
constexpr int k_most_doublings = 5;
// Where nothing tells that the agent's socket has appeared.
constexpr auto k_look_again = std::chrono::seconds(1);

// The kernel limits inotify's instances and watches for each user of a node, and all containers' root is one
// user.
bool is_shortage(int code) {
  return code == EMFILE || code == ENFILE || code == ENOSPC || code == ENOMEM;
}
}  // namespace

AgentLink::AgentLink(Loop& loop, std::string run_directory, wire::Hello hello, Handlers handlers)
    : loop_(loop),
      run_directory_(std::move(run_directory)),
      hello_(std::move(hello)),
      handlers_(std::move(handlers)) {}

void AgentLink::start() {
  reconnect();
}

void AgentLink::leave() {
  left_ = true;
  if (channel_) (void)channel_->flush();
  channel_.reset();
}

void AgentLink::drop(std::string_view reason) {
  on_lost(Error(std::string(reason)));
}

Result<void> AgentLink::connect() {
  if (TRY(try_connect()) || inotify_) return {};
  auto watched = watch_directory();
  if (!watched && !is_shortage(watched.error().code())) return watched;
  if (!waiting_) {
    say("event=agent_awaited run_directory={}{}", run_directory_,
        watched ? "" : fmt::format(" once_a_second={}", value(watched.error().message())));
    waiting_ = true;
  }
  if (!watched) {
    retry_after(k_look_again);
    return {};
  }
  // The socket may have appeared before the watch was there: look once more.
  TRY(try_connect());
  return {};
}

Result<bool> AgentLink::try_connect() {
  auto socket = wire::connect_to(run_directory_ + "/agent.sock", SOCK_NONBLOCK);
  if (!socket) {
    const int code = socket.error().code();
    // An agent that does not accept has more connections waiting than its socket takes.
    if (code == EAGAIN) retry_after(k_look_again);
    if (code == ENOENT || code == ECONNREFUSED || code == EAGAIN) return false;
    return socket.error();
  }
  // Whoever listens decides what runs here as any user this one can become; only root of this pod may, or,
  // with
  // --unprivileged, that one user.
  const auto peer = TRY(wire::peer_of(socket.value()));
  if (peer.uid != 0 && peer.uid != ::geteuid()) {
    say("event=agent_refused why=neither-root-nor-this-user uid={}", peer.uid);
    return false;
  }
  if (inotify_) loop_.forget(inotify_.get());
  inotify_.reset();
  channel_ = TRY(wire::Channel::create(loop_, std::move(socket).value(),
                                       {handlers_.frame, [this](const Error& reason) { on_lost(reason); }}));
  loop_.cancel(retry_);
  waiting_ = false;
  connected_at_ = Loop::now();
  say("event=agent_connected");
  send(hello_);
  return true;
}

Result<void> AgentLink::watch_directory() {
  Fd folder = TRY(watch_folder(run_directory_));
  TRY(loop_.watch(folder.get(), EPOLLIN, [this](std::uint32_t) { on_directory(); }));
  inotify_ = std::move(folder);
  return {};
}

void AgentLink::on_directory() {
  drain_folder_watch(inotify_);
  reconnect();
}

void AgentLink::reconnect() {
  if (left_) return;
  const auto connected = connect();
  if (!connected) handlers_.failed(connected.error());
}

void AgentLink::on_lost(const Error& reason) {
  channel_.reset();
  say("event=agent_lost reason={}", value(reason.message().empty() ? "closed" : reason.message()));
  held_ = true;
  if (handlers_.lost()) resume();
}

void AgentLink::resume() {
  if (!std::exchange(held_, false)) return;
  const bool brief = Loop::now() - connected_at_ < k_short_connection;
  short_connections_ = brief ? std::min(short_connections_ + 1, k_most_doublings + 1) : 0;
  const int doublings = short_connections_ - 2;
  if (doublings < 0) return reconnect();
  retry_after(std::chrono::seconds(1 << doublings));
}

void AgentLink::retry_after(Milliseconds delay) {
  loop_.cancel(retry_);
  retry_ = loop_.after(delay, [this] { reconnect(); });
}

}  // namespace glidepod::glue
