#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace glidepod::glue {

// Writes "glue: LINE" to stderr in one piece; `kubectl logs` shows these lines. A line is "event=NAME
// key=value ...". It never waits: lines that nobody takes are dropped and counted. Never pass it an
// environment or an argument list.
void say(std::string_view line);

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

// A text from outside as one value of a line: in double quotes, cut to a limit, with blanks for control
// characters.
std::string value(std::string_view text);

}  // namespace glidepod::glue
