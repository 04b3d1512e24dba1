#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace glidepod::http {

// One connection's TLS, on the server's side. It is for one thread.
class TlsSession {
 public:
  explicit TlsSession(ssl_st* session) : session_(session) {}
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Wait until the deadline for at least one byte. 0: the client has ended the session; -1: it is broken, or
  // the time is over.
  ssize_t read(char* target, std::size_t size, SteadyTime deadline);
  ssize_t write(const char* data, std::size_t size, SteadyTime deadline);
  // Tells the client that no more comes.
  void close();

 private:
  ssl_st* session_;
};

// A server's certificate and key, from PEM files. Connections begin with what is in the files then: a pair
// that does not fit is left out, with a line in the log.
class Certificate {
 public:
  static Result<std::unique_ptr<Certificate>> load(std::string chain_file, std::string key_file);
  ~Certificate();
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  // Makes the descriptor non-blocking, and waits for the client's part. Safe from any thread.
  Result<std::unique_ptr<TlsSession>> accept(int fd, SteadyTime deadline);

 private:
  struct Version {
    timespec chain{}, key{};
    ino_t chain_inode = 0, key_inode = 0;
  };
  Certificate(std::string chain_file, std::string key_file)
      : chain_file_(std::move(chain_file)), key_file_(std::move(key_file)) {}
  Version version() const;
  Result<ssl_ctx_st*> read() const;
  void refresh();

  std::string chain_file_, key_file_;
  std::mutex mutex_;
  Version version_;
  ssl_ctx_st* context_ = nullptr;
};

}  // namespace glidepod::http
