#include "lib/base/result.hpp"

#include <cstring>

namespace glidepod {

std::string Error::message() const {
  if (code_ == 0) return context_;
  // strerrordesc_np, unlike strerror, is thread-safe and never translated: logs stay searchable.
  const char* words = strerrordesc_np(code_);
  return fmt::format("{}: {}", context_, words ? words : fmt::format("error {}", code_));
}

Error Error::in(std::string_view outer) const {
  return Error(fmt::format("{}: {}", outer, context_), code_);
}

}  // namespace glidepod
