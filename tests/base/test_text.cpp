#include "lib/base/text.hpp"

#include <doctest/doctest.h>

using namespace glidepod;

TEST_CASE("text: split keeps empty parts") {
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string>{""});
}

TEST_CASE("text: trim") {
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim(" \n") == "");
}

TEST_CASE("text: a whole number or an error that quotes it") {
  CHECK(parse_integer("-42").value() == -42);
  for (const char* bad : {"", " 1", "1x", "9223372036854775808", "0x10"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_integer(bad).ok());
  }
  CHECK(parse_integer("7up").error().message() == "'7up' is not a whole number");
}

TEST_CASE("text: one line of a longer text") {
  CHECK(one_line("first\x1b[31m\nsecond") == "first [31m");
  CHECK(one_line("abcdef", 3) == "abc");
}
