#include "lib/base/terminal.hpp"

#include <doctest/doctest.h>
#include <pty.h>
#include <stdlib.h>

#include "lib/base/fd.hpp"

using namespace glidepod;

TEST_CASE("terminal: its size and the environment, and nothing of a pipe") {
  int master = -1, slave = -1;
  const winsize size{33, 77, 0, 0};
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  const Fd ours(master), theirs(slave);
  for (const char* name : {"COLUMNS", "NO_COLOR"}) ::unsetenv(name);
  ::setenv("TERM", "xterm", 1);
  auto terminal = Terminal::of(slave);
  CHECK(terminal.width == 77);
  CHECK(terminal.height == 33);
  CHECK(terminal.color);
  ::setenv("COLUMNS", "120", 1);
  ::setenv("NO_COLOR", "1", 1);
  terminal = Terminal::of(slave);
  CHECK(terminal.width == 120);
  CHECK_FALSE(terminal.color);
  ::setenv("COLUMNS", "wide", 1);
  ::setenv("TERM", "dumb", 1);
  ::unsetenv("NO_COLOR");
  terminal = Terminal::of(slave);
  CHECK(terminal.width == 77);
  CHECK_FALSE(terminal.color);

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd out(ends[0]), in(ends[1]);
  ::setenv("COLUMNS", "120", 1);
  ::setenv("TERM", "xterm", 1);
  terminal = Terminal::of(in.get());
  CHECK(terminal.width == 0);
  CHECK(terminal.height == 0);
  CHECK_FALSE(terminal.color);
}
