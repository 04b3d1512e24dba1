#include "pilot-agent/hold_job/cedar.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>

#include "lib/base/text.hpp"

namespace glidepod::cedar {
namespace {

constexpr std::size_t k_longest = 1 << 20;
constexpr std::size_t k_header = 5;  // whether the message ends here, and the packet's length

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

// A number is 8 bytes long, whatever its type.
Message& Message::number(std::int32_t value) {
  bytes_ += std::string(4, value < 0 ? '\xff' : '\0') + big_endian(static_cast<std::uint32_t>(value));
  return *this;
}

Message& Message::text(std::string_view value) {
  bytes_ += value;
  bytes_ += '\0';
  return *this;
}

Message& Message::ad(const std::map<std::string, std::string>& attributes) {
  number(static_cast<std::int32_t>(attributes.size()));
  for (const auto& [name, expression] : attributes) text(fmt::format("{} = {}", name, expression));
  return text("").text("");
}

std::string Message::packet() const {
  return '\x01' + big_endian(static_cast<std::uint32_t>(bytes_.size())) + bytes_;
}

Result<std::int32_t> Reader::number() {
  if (bytes_.size() - at_ < 8) return error("the starter's message lacks a number");
  at_ += 8;
  return static_cast<std::int32_t>(big_endian(std::string_view(bytes_).substr(at_ - 4, 4)));
}

Result<std::string> Reader::text() {
  const auto end = bytes_.find('\0', at_);
  if (end == std::string::npos) return error("the starter's message has a string without end");
  std::string value = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return value;
}

Result<std::map<std::string, std::string>> Reader::ad() {
  std::map<std::string, std::string> attributes;
  for (std::int32_t left = TRY(number()); left > 0; --left) {
    const std::string line = TRY(text());
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    attributes[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
  return attributes;
}

Result<Address> parse_address(std::string_view line) {
  const auto begin = line.find('<');
  auto text = line.substr(begin == std::string_view::npos ? line.size() : begin + 1);
  text = text.substr(0, text.find_first_of("?>"));
  const auto colon = text.rfind(':');
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (colon == std::string_view::npos || host.empty())
    return error("'{}' is not a starter's address", one_line(line, 100));
  const std::int64_t port = TRY(parse_integer(text.substr(colon + 1)));
  if (port <= 0 || port > 65535) return error("'{}' has no valid port", one_line(line, 100));
  return Address{std::string(host), static_cast<std::uint16_t>(port)};
}

namespace {
bool is_word(std::string_view text) {
  constexpr std::size_t k_longest_word = 64;
  const auto letter = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && text.size() <= k_longest_word && std::ranges::all_of(text, letter);
}
bool is_host(std::string_view text) {
  in6_addr address{};
  const std::string host(text);
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}
bool is_port(std::string_view text) {
  const auto port = parse_integer(text);
  return is_word(text) && port && *port > 0 && *port <= 65535;
}
}  // namespace

Result<ProofFolder> proof_folder(std::string_view named, const Address& starter) {
  constexpr std::string_view k_begin = "/tmp/FS_";
  const auto refused = [&] {
    return error("the starter wants the folder '{}' made, which FS never names", one_line(named, 100));
  };
  if (!named.starts_with(k_begin) || named.find('\0') != std::string_view::npos) return refused();
  const std::string path(named);
  const auto parts = split(named.substr(k_begin.size()), '_');
  if (parts.size() == 1 && is_word(parts[0])) return ProofFolder{path, {}};
  if (parts.size() < 3 || parts.size() > 4 || !is_host(parts[0]) || !is_port(parts[1]) || !is_word(parts[2]))
    return refused();
  const bool v6 = starter.host.find(':') != std::string::npos;
  if (parts.size() == 4 && parts[3].empty()) {
    const std::string added =
        fmt::format("{0}{1}{2}:{3}", v6 ? "[" : "", starter.host, v6 ? "]" : "", starter.port);
    return ProofFolder{path + added, added};
  }
  if (parts.size() == 3 && parts[0] == starter.host && parts[1] == std::to_string(starter.port))
    return ProofFolder{path, {}};
  return refused();
}

Result<Connection> Connection::open(const Address& address, int seconds) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    return error("'{}' is not an IP address", address.host);
  Fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{seconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int connected = ::connect(socket.get(), found->ai_addr, found->ai_addrlen);
  const Error failure = Error::system("connect to {}:{}", address.host, address.port);
  ::freeaddrinfo(found);
  if (connected != 0) return failure;
  return Connection(std::move(socket));
}

Result<void> Connection::send(const Message& message) {
  std::string_view left{};
  const std::string packet = message.packet();
  for (left = packet; !left.empty();) {
    const ssize_t sent = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0) return Error::system("send");
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> Connection::fill(std::span<char> bytes) {
  for (std::size_t have = 0; have < bytes.size();) {
    const ssize_t got = ::recv(socket_.get(), bytes.data() + have, bytes.size() - have, 0);
    if (got < 0) return Error::system("receive");
    if (got == 0) return error("the starter closed the connection");
    have += static_cast<std::size_t>(got);
  }
  return {};
}

Result<Reader> Connection::receive() {
  std::string bytes;
  for (bool last = false; !last;) {
    std::array<char, k_header> header{};
    TRY(fill(header));
    last = header.front() != 0;
    const std::size_t length = big_endian(std::string_view(header.data(), header.size()).substr(1));
    if (bytes.size() + length > k_longest) return error("the starter's message is too long");
    const std::size_t before = bytes.size();
    bytes.resize(before + length);
    TRY(fill(std::span(bytes).subspan(before)));
  }
  return Reader(std::move(bytes));
}

}  // namespace glidepod::cedar
