#include "lib/pattern/pattern.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace glidepod;

namespace {

bool matches(std::string_view pattern, std::string_view text) {
  return Pattern::compile(pattern).value().matches(text).value();
}

}  // namespace

TEST_CASE("pattern: the whole text must match, or a part of it") {
  CHECK(matches("a|ab", "ab"));
  CHECK_FALSE(matches("a", "ab"));
  CHECK_FALSE(matches(".*", "a\nb"));
  CHECK_FALSE(matches("a$", "a\n"));
  CHECK(matches("", ""));
  CHECK(matches("(?!test-).*[.]edu", "ap.uni.edu"));
  CHECK_FALSE(matches("(?!test-).*[.]edu", "test-ap.uni.edu"));
  const auto part = Pattern::compile("^b+").value();
  CHECK_FALSE(part.found_in("ab").value());
  CHECK(part.found_in("ba").value());
}

TEST_CASE("pattern: what is no pattern is an error that says where") {
  CHECK(Pattern::compile("a(b").error().message() == "missing closing parenthesis (at character 3)");
  for (const std::string& bad :
       {std::string("*"), std::string("[a"), std::string(200, '(') + std::string(200, ')'),
        std::string(20'000, 'a'), std::string("((a{1,1000}){1,1000}){1,1000}")})
    CHECK_FALSE(Pattern::compile(bad));
}

TEST_CASE("pattern: no text costs more than a constant") {
  for (const auto* pattern : {"(a+)+b", "(a|a)*b", "(.|x)*y", "(a*)*(a*)*(a*)*b", "(?:(a)|b)*c"}) {
    CAPTURE(pattern);
    const auto compiled = Pattern::compile(pattern).value();
    for (const std::size_t length : {std::size_t{60}, std::size_t{60'000}}) {
      const auto found = compiled.matches(std::string(length, 'a'));
      CHECK((!found || !found.value()));
    }
  }
  // Some millions of steps, which the library by itself would still take.
  CHECK_FALSE(Pattern::compile("(a+)+[bc]").value().matches(std::string(20, 'a')));
  CHECK_FALSE(Pattern::compile(".*").value().matches(std::string(200'000, 'a')));
}
