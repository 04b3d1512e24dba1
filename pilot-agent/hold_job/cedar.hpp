#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::cedar {

// A message of HTCondor's, to be sent.
class Message {
 public:
  Message& number(std::int32_t value);
  // Without a NUL in it.
  Message& text(std::string_view value);
  // Expressions by attribute, as an old ClassAd without types.
  Message& ad(const std::map<std::string, std::string>& attributes);
  // As it goes over the wire: one packet.
  std::string packet() const;

 private:
  std::string bytes_;
};

// One that was received. What is not as expected is an error.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<std::int32_t> number();
  Result<std::string> text();
  Result<std::map<std::string, std::string>> ad();

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

// "<10.1.2.3:4567?addrs=...>", the first line of a daemon's address file.
struct Address {
  std::string host;  // IPv4 or IPv6, without brackets
  std::uint16_t port = 0;
};
Result<Address> parse_address(std::string_view line);

// Whether the method FS can name this path for a folder that is to be made: /tmp/FS_ and letters or digits.
bool is_proof_folder(std::string_view path);

// A connection that blocks, at most so long at each step.
class Connection {
 public:
  static Result<Connection> open(const Address& address, int seconds);
  explicit Connection(Fd socket) : socket_(std::move(socket)) {}
  Result<void> send(const Message& message);
  Result<Reader> receive();

 private:
  Result<void> fill(std::span<char> bytes);
  Fd socket_;
};

}  // namespace glidepod::cedar
