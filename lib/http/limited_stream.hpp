#pragma once

#include <httplib.h>

#include <array>
#include <optional>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/http/tls.hpp"

namespace glidepod::http {

// The answer to a request that is refused before a handler sees it.
struct Refusal {
  int status = 400;
  std::string message;
};

// A client's socket for cpp-httplib's parser and writer, with limits on the time and bytes that a request may
// take. It blocks, and is for one thread.
class LimitedStream : public httplib::Stream {
 public:
  static constexpr std::size_t k_body_limit = std::size_t{3} << 20;  // the same as in etcd and the API server
  static constexpr Milliseconds k_upload_grace{30'000};
  static constexpr std::uint64_t k_least_rate = std::uint64_t{256} << 10;  // bytes a second of an upload

  // Over TLS if there is a session, which must outlive it.
  explicit LimitedStream(int fd, TlsSession* session = nullptr) : fd_(fd), session_(session) {}

  // Waits for the next request's first byte. Returns false if none comes.
  bool await_request();

  // Checks what the request's headers say about where it ends. If they are wrong, returns the refusal to
  // answer with. The connection is then of no more use, since it is not known where the next request begins.
  // longest_upload: the body of a PUT may have so many bytes, if it is not 0; read_upload() reads it.
  std::optional<Refusal> check_framing(const httplib::Request& request, std::uint64_t longest_upload = 0);
  // Whether the request has more bytes than it may have.
  bool too_long() const { return budget_ == 0; }
  // Whether the headers were read and understood, so that the beginning of the next request is known.
  bool in_step() const { return in_step_; }

  // From here on the body of an upload may come: size bytes, as fast as k_least_rate after some time of
  // grace.
  void begin_upload(std::uint64_t size, Milliseconds grace = k_upload_grace);
  // The next bytes of it, at least one. 0: it has ended early; -1: it was too slow, or the connection is
  // lost.
  ssize_t read_upload(char* target, std::size_t size);
  // Says that the request's body was read whole, so that the next request's beginning is known again.
  void upload_ended() { in_step_ = true; }

  // Gives the client time to read the answer before the connection is closed on the rest of its request.
  void linger();

  bool is_readable() const override { return true; }
  bool is_writable() const override;
  ssize_t read(char* target, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return fd_; }

 private:
  bool fill();
  ssize_t receive(char* target, std::size_t size);

  int fd_;
  TlsSession* session_;
  std::uint64_t uploaded_ = 0;
  SteadyTime upload_due_;  // with nothing of it
  SteadyTime deadline_;
  std::size_t budget_ = 0;
  bool in_step_ = false;
  std::array<char, 8192> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

// Milliseconds for poll(2), not below 0.
int left_until(SteadyTime deadline);

}  // namespace glidepod::http
