#include "lib/wire/channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace glidepod::wire {

namespace {
struct Header {
  std::uint32_t length;  // the length of the body
  Type type;
  std::uint32_t fds;
};
constexpr std::size_t k_header_size = 12;
constexpr std::size_t k_kept_buffer = std::size_t{64} << 10;
void fields(auto& io, Is<Header> auto& m) {
  io(m.length, m.type, m.fds);
}
}  // namespace

Channel::Channel(Loop& loop, Fd socket, Handlers handlers, std::size_t longest)
    : loop_(loop), socket_(std::move(socket)), handlers_(std::move(handlers)), longest_(longest) {}

Channel::~Channel() {
  *alive_ = false;
  loop_.forget(socket_.get());
}

Result<std::unique_ptr<Channel>> Channel::create(Loop& loop, Fd socket, Handlers handlers,
                                                 std::size_t longest) {
  std::unique_ptr<Channel> channel(new Channel(loop, std::move(socket), std::move(handlers), longest));
  TRY(loop.watch(channel->socket_.get(), EPOLLIN,
                 [raw = channel.get()](std::uint32_t events) { raw->on_events(events); }));
  return channel;
}

Result<void> Channel::send_frame(Type type, const std::string& body, const std::vector<int>& fds) {
  if (body.size() > k_longest_frame) return error("message of {} bytes is too long", body.size());
  Writer writer;
  writer(static_cast<std::uint32_t>(body.size()), type, static_cast<std::uint32_t>(fds.size()));
  Outgoing out;
  out.bytes = writer.take() + body;
  for (const int fd : fds) {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return Error::system("descriptor {} to send", fd);
    out.fds.emplace_back(copy);
  }
  unsent_ += out.bytes.size();
  if (held_ && out.fds.empty() && !outgoing_.empty())
    outgoing_.back().bytes += out.bytes;
  else
    outgoing_.push_back(std::move(out));
  return held_ ? Result<void>() : write_soon();
}

Result<void> Channel::release() {
  held_ = false;
  return write_soon();
}

Result<void> Channel::write_soon() {
  const bool done = TRY(write_some());
  return done ? Result<void>() : loop_.change(socket_.get(), EPOLLIN | EPOLLOUT);
}

Result<bool> Channel::write_some() {
  while (!outgoing_.empty()) {
    Outgoing& out = outgoing_.front();
    iovec data{.iov_base = out.bytes.data() + out.sent, .iov_len = out.bytes.size() - out.sent};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * k_most_fds)> control{};
    if (!out.fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(sizeof(int) * out.fds.size());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * out.fds.size());
      for (std::size_t i = 0; i < out.fds.size(); ++i) {
        const int fd = out.fds[i].get();
        std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
      }
    }
    const ssize_t put = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (put < 0) return Error::system("send");
    out.fds.clear();
    out.sent += static_cast<std::size_t>(put);
    unsent_ -= static_cast<std::size_t>(put);
    if (out.sent == out.bytes.size()) outgoing_.pop_front();
  }
  return true;
}

Result<void> Channel::flush(Milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!TRY(write_some())) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return error("the peer does not read");
    pollfd wait{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&wait, 1, static_cast<int>(left.count())) < 0 && errno != EINTR) return Error::system("poll");
  }
  return {};
}

Result<bool> Channel::read_some() {
  std::array<char, 65536> buffer;
  iovec data{.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * k_most_fds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return true;
    if (errno == ECONNRESET) return false;
    return Error::system("receive");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t offset = 0; CMSG_LEN(offset) < header->cmsg_len; offset += sizeof(int)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + offset, sizeof fd);
      incoming_fds_.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || incoming_fds_.size() > 2 * k_most_fds)
    return error("more descriptors than a message may carry");
  if (got == 0) return false;
  incoming_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

Result<bool> Channel::next_frame(Frame* frame) {
  if (incoming_.size() < k_header_size) return false;
  Header header{};
  Reader reader(std::string_view(incoming_).substr(0, k_header_size));
  fields(reader, header);
  if (header.length > longest_ || header.fds > k_most_fds) return error("malformed message");
  if (incoming_.size() < k_header_size + header.length) return false;
  if (incoming_fds_.size() < header.fds) return error("a message came without its descriptors");
  frame->type = header.type;
  frame->body = incoming_.substr(k_header_size, header.length);
  frame->fds.clear();
  for (std::uint32_t i = 0; i < header.fds; ++i) {
    frame->fds.push_back(std::move(incoming_fds_.front()));
    incoming_fds_.pop_front();
  }
  incoming_.erase(0, k_header_size + header.length);
  // Frees the buffer of a long message: the next message may be days away.
  if (incoming_.empty() && incoming_.capacity() > k_kept_buffer) incoming_.shrink_to_fit();
  return true;
}

void Channel::on_events(std::uint32_t events) {
  const auto alive = alive_;
  // The handlers may destroy this channel. So after each call, check that it exists before you touch a
  // member.
  const auto close = [&](const Error& reason) {
    loop_.forget(socket_.get());
    const auto closed = handlers_.closed;
    closed(reason);
  };
  if ((events & EPOLLOUT) != 0) {
    const auto done = write_some();
    // The reading below notices a peer that is gone.
    if (!done || done.value()) (void)loop_.change(socket_.get(), EPOLLIN);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  const auto open = read_some();
  if (!open) return close(open.error());
  while (true) {
    Frame frame;
    const auto got = next_frame(&frame);
    if (!got) return close(got.error());
    if (!got.value()) break;
    const auto handle = handlers_.frame;
    handle(std::move(frame));
    if (!*alive) return;
  }
  if (!open.value()) close(Error(""));
}

bool takes_signal(const Channel& channel, int number) {
  constexpr std::size_t k_many = std::size_t{64} << 10;
  const bool ends = number == SIGTERM || number == SIGINT || number == SIGQUIT || number == SIGHUP;
  return channel.unsent() < (number == SIGKILL ? 16 : ends ? 2 : 1) * k_many;
}

}  // namespace glidepod::wire
