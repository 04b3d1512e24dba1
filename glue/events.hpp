#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace glidepod::glue {

// Writes "glue: LINE" to stderr in one piece: what `kubectl logs` shows of this container. A line is
// "event=NAME key=value ...". Never waits: lines that nobody takes are dropped, and counted. Never an
// environment, never an argument list.
void say(std::string_view line);

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

// A text from outside as one value of a line: in double quotes, cut, control characters as blanks.
std::string value(std::string_view text);

}  // namespace glidepod::glue
