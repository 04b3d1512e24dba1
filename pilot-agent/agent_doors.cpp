// The driver's doors: who may connect, and what may be handed to a job.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/streams.hpp"
#include "pilot-agent/agent.hpp"

namespace glidepod::agent {
namespace {

// HTCondor's condor_holdcodes.h.
constexpr int k_unable_to_open_output = 7;
constexpr int k_unable_to_open_input = 8;

bool lives(const Fd& process) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), 0, nullptr, 0) == 0 || errno == EPERM;
}

}  // namespace

// Before anything else: a second agent would take both sockets over, and with them every new job, while the
// first one has the jobs that run. The kernel gives the lock back when its holder ends, however it does.
Result<void> Agent::take_lock() {
  const auto path = std::filesystem::path(settings_.agent_socket).replace_filename("agent.lock").string();
  Fd lock = TRY(open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Error::system("lock {}", path);
    return error("another pilot-agent serves this pod and holds {}; `pilot-agent status` shows what it does",
                 path)
        .with(ServedAlready{});
  }
  lock_ = std::move(lock);
  return {};
}

// Glue runs as root; a job that came to this socket would not. Where the pod has no root they are one user.
void Agent::accept_glue() {
  auto socket = wire::accept_from(glue_listener_);
  if (!socket) return spdlog::error("event=accept_failed reason={}", quoted(socket.error().message()));
  if (!socket->valid()) return;
  const auto peer = wire::peer_of(*socket);
  if (!peer) return spdlog::error("event=accept_failed reason={}", quoted(peer.error().message()));
  if (peer->uid != ::geteuid())
    return spdlog::warn("event=stranger socket=agent uid={} pid={}", peer->uid, peer->pid);
  const GlueId id = ++last_id_;
  PeerProcess process = find_peer_process(*socket);
  auto channel = wire::Channel::create(loop_, std::move(*socket),
                                       {[this, id](const wire::Frame& frame) { glue_frame(id, frame); },
                                        [this, id](const Error& reason) { close_glue(id, reason); }});
  if (!channel) return spdlog::error("event=accept_failed reason={}", quoted(channel.error().message()));
  GlueLink& link = glues_[id];
  link.channel = std::move(*channel);
  link.process = std::move(process.pidfd);
  link.instance = process.container_id;
}

// Everybody in the pilot container may connect, and nobody else: whatever way a job finds to the socket, its
// process is in its own container's control group, which it cannot leave.
void Agent::accept_client() {
  auto socket = wire::accept_from(client_listener_);
  if (!socket) return spdlog::error("event=accept_failed reason={}", quoted(socket.error().message()));
  if (!socket->valid()) return;
  auto peer = wire::peer_of(*socket);
  if (!peer) return spdlog::error("event=accept_failed reason={}", quoted(peer.error().message()));
  PeerProcess process = find_peer_process(*socket);
  if (!process.in_own_container)
    return spdlog::warn("event=stranger socket=exec uid={} pid={}", peer->uid, peer->pid);
  open_link(std::move(*socket), *std::move(peer), std::move(process), {}, wire::k_longest_frame);
}

Result<void> Agent::judge(const ClientLink& link, const std::vector<Fd>& streams,
                          const std::string& sandbox) const {
  return wire::judge_streams(streams, {settings_.scratch, sandbox, wire::terminal_of(link.peer.pid)});
}

// The job can never start so: its owner has to change a line.
void Agent::refuse_streams(ClientId client, const Error& why) {
  spdlog::warn("event=refused uid={} reason={}", clients_.at(client).peer.uid, quoted(why.message()));
  const auto* stream = why.fact<wire::RefusedStream>();
  const int code =
      stream != nullptr && stream->number == 0 ? k_unable_to_open_input : k_unable_to_open_output;
  hold({client, {}, code, EACCES, why.message()},
       [this, client, message = why.message()] { tell(client, wire::Fault::user, message); });
}

// A slot's user has one job at a time, so a second one would be somebody's who is not the slot's starter.
// Where jobs have HTCondor's own user, or this one's, they share it.
bool Agent::binds_already(ClientId client) const {
  const uid_t uid = clients_.at(client).peer.uid;
  if (uid == trusted_uid_ || uid == ::geteuid() || ::geteuid() != 0) return false;
  return std::ranges::any_of(clients_, [&](const auto& other) {
    const ClientLink& link = other.second;
    return other.first != client && link.binds && link.peer.uid == uid && lives(link.process);
  });
}

}  // namespace glidepod::agent
