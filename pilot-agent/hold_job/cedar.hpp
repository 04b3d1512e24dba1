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

// The folder by which the method FS has its client prove who it is.
struct ProofFolder {
  std::string path;
  std::string added;  // to the name that the starter gave, which wants to be told; mostly empty
};
// Which folder is to be made for a starter at this address that names this path. It is an error where the
// method FS cannot name it: /tmp/FS_ and letters or digits, or, from HTCondor 25.14 on, the starter's address
// and port before these. There a '_' at the end asks for our view of that address to be added, so that
// nobody can pass on what another daemon asks for.
Result<ProofFolder> proof_folder(std::string_view named, const Address& starter);

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
