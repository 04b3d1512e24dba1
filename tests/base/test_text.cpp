#include "lib/base/text.hpp"

#include <doctest/doctest.h>

using namespace glidepod;

TEST_CASE("text: small letters, of A to Z alone") {
  CHECK(lower_case("AbZ @[`{ 19") == "abz @[`{ 19");
  CHECK(lower_case("\xc3\x84") == "\xc3\x84");
  CHECK(lower_case("").empty());
}

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

TEST_CASE("text: harmless") {
  CHECK(harmless("plain ~!") == "plain ~!");
  CHECK(harmless("a\x1b[1m\n\xc2\x9b\x7f") == "a\\x1b[1m\\x0a\\xc2\\x9b\\x7f");
}

TEST_CASE("text: shortened in the middle") {
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdef", 5) == "ab~ef");
  CHECK(shortened("abcdef", 4) == "ab~f");
  CHECK(shortened("abcdef", 1) == "~");
  CHECK(shortened("abcdef", 0).empty());
}

TEST_CASE("text: columns that fit") {
  using Rows = std::vector<std::vector<std::string>>;
  const Rows all = {{"A", "B", "C"}, {"aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbb", "cc"}};
  auto rows = all;
  fit_columns(rows, 38, {"B"});
  CHECK(rows == all);
  fit_columns(rows, 30, {"B"});
  CHECK(rows == Rows{{"A", "B", "C"}, {"aaaaaa~aaaaa", "bbbbbbbbbbbb", "cc"}});
  // Before a column has less than its due, a spare one goes.
  rows = all;
  fit_columns(rows, 26, {"nosuch", "B", "C"});
  CHECK(rows == Rows{{"A", "C"}, {"aaaaaaaaaaaaaaaaaaaa", "cc"}});
  fit_columns(rows, 21, {"B"});
  CHECK(rows == Rows{{"A", "C"}, {"aaaaaaaa~aaaaaaaa", "cc"}});
  rows = all;
  fit_columns(rows, 10, {});
  CHECK(columns(rows).find('\n') <= 10);
  Rows none;
  fit_columns(none, 5, {"A"});
  CHECK(none.empty());
}
