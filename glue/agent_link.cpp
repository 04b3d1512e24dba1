#include "glue/agent_link.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "glue/events.hpp"
#include "lib/wire/socket.hpp"

namespace glidepod::glue {

namespace {
// An agent that hangs up at once, refusing this glue's version say, is not asked again in a tight loop.
constexpr auto k_short_connection = std::chrono::seconds(5);
constexpr int k_most_doublings = 5;
}  // namespace

AgentLink::AgentLink(Loop& loop, std::string run_directory, std::string container, Handlers handlers)
    : loop_(loop),
      run_directory_(std::move(run_directory)),
      container_(std::move(container)),
      handlers_(std::move(handlers)) {}

AgentLink::~AgentLink() {
  if (inotify_) loop_.forget(inotify_.get());
  loop_.cancel(retry_);
}

Result<void> AgentLink::start() {
  return connect();
}

void AgentLink::flush() {
  if (channel_) (void)channel_->flush();
}

void AgentLink::drop(std::string_view reason) {
  on_lost(Error(std::string(reason)));
}

Result<void> AgentLink::connect() {
  loop_.cancel(retry_);
  if (TRY(try_connect())) return {};
  // The socket may have appeared before the watch was there: look once more.
  if (!inotify_) {
    TRY(watch_directory());
    say("waiting for the agent run_directory={}", run_directory_);
    TRY(try_connect());
  }
  return {};
}

Result<bool> AgentLink::try_connect() {
  auto socket = wire::connect_to(run_directory_ + "/agent.sock");
  if (!socket) {
    const int code = socket.error().code();
    if (code == ENOENT || code == ECONNREFUSED) return false;
    return socket.error();
  }
  // Whoever listens decides what runs here as any user this one can become; only root of this pod may, or,
  // with
  // --unprivileged, that one user.
  const auto peer = TRY(wire::peer_of(socket.value()));
  if (peer.uid != 0 && peer.uid != ::geteuid()) {
    say("refused an agent that is neither root nor this user uid={}", peer.uid);
    return false;
  }
  if (inotify_) loop_.forget(inotify_.get());
  inotify_.reset();
  channel_ = TRY(wire::Channel::create(loop_, std::move(socket).value(),
                                       {handlers_.frame, [this](const Error& reason) { on_lost(reason); }}));
  connected_at_ = std::chrono::steady_clock::now();
  say("connected to the agent");
  send(wire::Hello{.container = container_, .version = GLIDEPOD_VERSION});
  return true;
}

Result<void> AgentLink::watch_directory() {
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return Error::system("inotify");
  // IN_MOVED_TO: the agent's socket appears by rename, already listening.
  if (::inotify_add_watch(inotify.get(), run_directory_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
    return Error::system("wait for the agent in {}", run_directory_);
  inotify_ = std::move(inotify);
  return loop_.watch(inotify_.get(), EPOLLIN, [this](std::uint32_t) { on_directory(); });
}

void AgentLink::on_directory() {
  std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  reconnect();
}

void AgentLink::reconnect() {
  const auto connected = connect();
  if (!connected) handlers_.failed(connected.error());
}

void AgentLink::on_lost(const Error& reason) {
  if (!channel_) return;
  channel_.reset();
  say("lost the agent reason={}", value(reason.message().empty() ? "closed" : reason.message()));
  handlers_.lost();
  const bool brief = std::chrono::steady_clock::now() - connected_at_ < k_short_connection;
  short_connections_ = brief ? std::min(short_connections_ + 1, k_most_doublings + 1) : 0;
  if (short_connections_ <= 1) return reconnect();
  retry_ = loop_.after(std::chrono::seconds(1 << (short_connections_ - 2)), [this] { reconnect(); });
}

}  // namespace glidepod::glue
