#include "store/serve.hpp"

#include <unistd.h>

#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/socket.hpp"
#include "store/layer.hpp"

namespace glidepod::store {
namespace {
constexpr std::size_t k_most_channels = 256;
}

Server::~Server() {
  if (listener_) loop_.forget(listener_.get());
  workers_.reset();  // ends before what it uses
}

Result<void> Server::listen(const std::string& path) {
  inbox_ = TRY(Inbox::create(loop_));
  listener_ = TRY(wire::listen_at(path, 0600));
  return loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
}

void Server::accept() {
  auto socket = wire::accept_from(listener_);
  if (!socket) return spdlog::error("event=accept_failed reason={}", quoted(socket.error().message()));
  if (!socket->valid()) return;
  const auto peer = wire::peer_of(*socket);
  if (!peer || peer->uid != ::geteuid()) return spdlog::warn("event=stranger uid={}", peer ? peer->uid : 0);
  if (channels_.size() >= k_most_channels)
    return spdlog::warn("event=too_many connections={}", k_most_channels);
  const Id id = ++last_id_;
  auto channel = wire::Channel::create(loop_, std::move(*socket),
                                       {[this, id](wire::Frame frame) { take(id, std::move(frame)); },
                                        [this, id](const Error&) { channels_.erase(id); }});
  if (!channel) return spdlog::error("event=accept_failed reason={}", quoted(channel.error().message()));
  channels_[id] = std::move(*channel);
}

void Server::take(Id id, wire::Frame frame) {
  if (const auto begun = begin(id, std::move(frame)); !begun) answer(id, begun.error());
}

Result<void> Server::begin(Id id, wire::Frame frame) {
  if (frame.type != wire::Type::store_image) return error("unexpected message");
  const auto wanted = TRY(frame.decode<wire::StoreImage>());
  if (wanted.protocol != wire::k_protocol)
    return error("the agent speaks protocol {}, image-store {}: take both from one version", wanted.protocol,
                 wire::k_protocol);
  if (frame.fds.size() != 1) return error("the request came without its file");
  spdlog::info("event=asked owner={}", quoted(one_line(wanted.owner, 100)));
  const auto file = std::make_shared<Fd>(std::move(frame.fds[0]));
  workers_->run([this, id, file, owner = wanted.owner] {
    const auto image = std::make_shared<Result<std::string>>(keeper_.image_of(*file, owner));
    inbox_->post([this, id, image] { answer(id, *image); });
  });
  return {};
}

void Server::answer(Id id, const Result<std::string>& image) {
  if (!image) spdlog::warn("event=no_image reason={}", quoted(image.error().message()));
  const auto found = channels_.find(id);
  if (found == channels_.end()) return;  // who asked has gone; the image stays
  if (image) {
    (void)found->second->send(wire::ImageStored{*image});
    return;
  }
  const bool users = image.error().fact<BadImage>() != nullptr;
  (void)found->second->send(
      wire::Failed{users ? wire::Fault::user : wire::Fault::infrastructure, image.error().message()});
}

}  // namespace glidepod::store
