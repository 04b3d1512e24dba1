#include "glue/events.hpp"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

// A pipe that takes anything takes so many bytes at once without blocking. O_NONBLOCK would be others' too:
// it belongs to the open file, which the container's runtime shares.
bool put(std::string text) {
  if (text.size() > PIPE_BUF) {
    text.resize(PIPE_BUF - 1);
    text += '\n';
  }
  pollfd wait{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&wait, 1, 0) != 1 || (wait.revents & POLLOUT) == 0) return false;
  return ::write(STDERR_FILENO, text.data(), text.size()) >= 0;
}

}  // namespace

void say(std::string_view line) {
  // A log that nobody takes is no reason to end a job, or to wait.
  static std::uint64_t lost = 0;
  if (lost != 0 && put(fmt::format("glue: event=lines_lost lines={}\n", lost))) lost = 0;
  if (lost != 0 || !put(fmt::format("glue: {}\n", line))) ++lost;
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
