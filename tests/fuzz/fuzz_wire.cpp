#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "lib/wire/channel.hpp"

using namespace glidepod;
using namespace glidepod::wire;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Message>
std::string bytes_of(const Message& message) {
  Writer writer;
  fields(writer, message);
  return writer.take();
}

// What is accepted once is, written again, accepted for ever and the same.
template <typename Message>
void try_message(const std::string& body) {
  const auto message = Frame{.type = Message::k_type, .body = body, .fds = {}}.decode<Message>();
  if (!message) return;
  const std::string written = bytes_of(message.value());
  require(written.size() == body.size());
  const auto again = Frame{.type = Message::k_type, .body = written, .fds = {}}.decode<Message>();
  require(again.ok() && bytes_of(again.value()) == written);
}

// The number that the next descriptor would have: grows if one is lost.
int next_descriptor() {
  return Fd(::dup(STDERR_FILENO)).get();
}

// Sends bytes with so many descriptors beside them. A kernel that takes no more of them is no finding.
bool send_with(const Fd& socket, std::string_view bytes, std::size_t descriptors) {
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int) * 16)] = {};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
    for (std::size_t i = 0; i < descriptors; ++i)
      std::memcpy(CMSG_DATA(header) + i * sizeof(int), "\2\0\0\0", sizeof(int));  // standard error's
  }
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// The bytes as they would arrive, whatever they promise about lengths and descriptors. In PIECES a byte each
// for how many come at once (high bits) and with how many descriptors (low bits).
void try_stream(const std::string& bytes, std::string_view pieces) {
  static Loop loop = Loop::create().value();
  const int before = next_descriptor();
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Fd ours(ends[0]);
  bool closed = false;
  std::size_t taken = 0;
  const auto take = [&](const Frame& frame) {
    taken += frame.fds.size();
    require(frame.fds.size() <= k_most_fds);
    require(std::ranges::all_of(frame.fds,
                                [](const Fd& fd) { return ::fcntl(fd.get(), F_GETFD) == FD_CLOEXEC; }));
    try_message<Launch>(frame.body);
    try_message<Signal>(frame.body);
    try_message<Finish>(frame.body);
    try_message<Beat>(frame.body);
    try_message<OpenSession>(frame.body);
    try_message<CloseSession>(frame.body);
  };
  auto channel = Channel::create(loop, Fd(ends[1]), {take, [&](const Error&) { closed = true; }});
  require(channel.ok());
  std::string_view left = bytes;
  std::size_t sent = 0;
  for (const char piece : pieces) {
    const auto size = std::min<std::size_t>(left.size(), (static_cast<unsigned char>(piece) >> 4) * 3 + 1U);
    if (size == 0 || !send_with(ours, left.substr(0, size), piece & 15)) break;
    sent += piece & 15U;
    left.remove_prefix(size);
  }
  if (!left.empty()) require(send_with(ours, left, 0));
  ours.reset();
  for (int round = 0; round < 100 && !closed; ++round) require(loop.run_once(Milliseconds(1000)).ok());
  require(closed && taken <= sent);
  channel.value().reset();
  require(next_descriptor() == before);
}

}  // namespace

// Everything glue reads from its socket, and what any process of the pilot container may send the agent: the
// first byte says which message, or a whole stream.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 60000) return 0;
  const std::string body(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 8) {
    case 0:
      try_message<Launch>(body);
      break;
    case 1:
      try_message<Signal>(body);
      break;
    case 2:
      try_message<Finish>(body);
      break;
    case 3:
      try_message<OpenSession>(body);
      break;
    case 4:
      try_message<Enter>(body);
      break;
    case 6:
      try_message<Beat>(body);
      break;
    case 7: {  // pieces, how many in the first byte
      const std::size_t pieces = body.empty() ? 0 : static_cast<unsigned char>(body[0]);
      if (body.size() > pieces + 1)
        try_stream(body.substr(pieces + 1), std::string_view(body).substr(1, pieces));
      break;
    }
    default:
      if (!body.empty()) try_stream(body, {});
  }
  return 0;
}
