#pragma once

#include <utility>

#include "lib/base/result.hpp"

namespace glidepod {

// Owns a file descriptor; -1 is none. Every descriptor of the project lives in one.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

  // A second descriptor of the same open file, close-on-exec.
  Result<Fd> duplicate() const;

 private:
  int fd_ = -1;
};

}  // namespace glidepod
