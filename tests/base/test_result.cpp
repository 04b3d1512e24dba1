#include "lib/base/result.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace glidepod;

namespace {
Result<int> half(int number) {
  if (number % 2 != 0) return error("{} is odd", number);
  return number / 2;
}
Result<int> quarter(int number) {
  return TRY(half(TRY(half(number))));
}
Result<std::unique_ptr<int>> boxed(int number) {
  return std::make_unique<int>(TRY(half(number)));
}
}  // namespace

TEST_CASE("result: TRY hands on the value or returns the error") {
  CHECK(quarter(12).value() == 3);
  CHECK(quarter(6).error().message() == "3 is odd");
  CHECK(*boxed(4).value() == 2);
}

TEST_CASE("result: context is outermost first, the system's words last") {
  errno = ENOENT;
  const Error inner = Error::system("open {}", "/x");
  CHECK(inner.in("read config").message() == "read config: open /x: No such file or directory");
  CHECK(inner.in("a").code() == ENOENT);
  CHECK(Result<void>(inner).in("b").error().message().starts_with("b: open"));
}
