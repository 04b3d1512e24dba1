#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace glidepod::registry {

// The SHA-256 of bytes that come piece by piece.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::string_view bytes);
  // "sha256:" and 64 hexadecimal digits, of all that was added. Nothing is added after this.
  std::string text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace glidepod::registry
