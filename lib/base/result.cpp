#include "lib/base/result.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace glidepod {

std::string Error::message() const {
  if (code_ == 0) return context_;
  // strerrordesc_np, unlike strerror, is thread-safe and never translated: logs stay searchable.
  const char* words = strerrordesc_np(code_);
  return fmt::format("{}: {}", context_, words ? words : fmt::format("error {}", code_));
}

Error Error::in(std::string_view outer) const {
  Error result = *this;
  result.context_ = fmt::format("{}: {}", outer, context_);
  return result;
}

void no_such_result(const Error* present) {
  const std::string words =
      present ? fmt::format("bug: the value of a failure was asked for: {}\n", present->message())
              : "bug: the error of a success was asked for\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
  std::abort();
}

}  // namespace glidepod
