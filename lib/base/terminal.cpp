#include "lib/base/terminal.hpp"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string_view>

#include "lib/base/text.hpp"

namespace glidepod {

namespace {

std::string_view variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

Terminal Terminal::of(int fd) {
  Terminal terminal;
  if (::isatty(fd) == 0) return terminal;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0) {
    terminal.width = size.ws_col;
    terminal.height = size.ws_row;
  }
  if (const auto columns = parse_integer(variable("COLUMNS")); columns && columns.value() > 0)
    terminal.width = static_cast<std::size_t>(columns.value());
  terminal.color = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return terminal;
}

}  // namespace glidepod
