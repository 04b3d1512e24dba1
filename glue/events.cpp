#include "glue/events.hpp"

#include <unistd.h>

#include "lib/base/text.hpp"

namespace glidepod::glue {

void say(std::string_view line) {
  const std::string text = fmt::format("glue: {}\n", line);
  // A log that nobody takes is no reason to end a job.
  [[maybe_unused]] const auto written = ::write(2, text.data(), text.size());
}

std::string value(std::string_view text) {
  std::string result = "\"";
  for (const char c : one_line(text, 300)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace glidepod::glue
