#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

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

// The bytes as they would arrive, whatever they promise about lengths and descriptors.
void try_stream(const std::string& bytes) {
  static Loop loop = Loop::create().value();
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Fd ours(ends[0]);
  bool closed = false;
  const auto take = [](const Frame& frame) {
    try_message<Launch>(frame.body);
    try_message<Signal>(frame.body);
    try_message<Finish>(frame.body);
    try_message<Beat>(frame.body);
    try_message<OpenSession>(frame.body);
    try_message<CloseSession>(frame.body);
  };
  auto channel = Channel::create(loop, Fd(ends[1]), {take, [&](const Error&) { closed = true; }});
  require(channel.ok());
  require(::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  ours.reset();
  for (int round = 0; round < 100; ++round) {
    if (closed) return;
    require(loop.run_once(Milliseconds(1000)).ok());
  }
  require(false);
}

}  // namespace

// Everything glue reads from its socket, and what any process of the pilot container may send the agent: the
// first byte says which message, or a whole stream.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 60000) return 0;
  const std::string body(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 7) {
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
    default:
      if (!body.empty()) try_stream(body);
  }
  return 0;
}
