#include "lib/condor/clauses.hpp"

#include <doctest/doctest.h>

#include <fmt/ranges.h>

using namespace glidepod::condor;

namespace {

std::string parts(std::string_view expression) {
  return fmt::format("{}", fmt::join(conjuncts(expression), " | "));
}

}  // namespace

TEST_CASE("clauses: an expression is taken apart at its outermost &&, brackets off") {
  CHECK(parts("a && b") == "a | b");
  CHECK(parts(" (a) && ((b && (c)) && f(d && e)) ") == "a | b | c | f(d && e)");
  CHECK(parts("(a) && (b)") == "a | b");
  CHECK(parts("((a && b))") == "a | b");
  CHECK(parts("a && (b || c)") == "a | b || c");
  CHECK(parts("x =?= undefined && s == \"a && b\"") == "x =?= undefined | s == \"a && b\"");
  CHECK(parts("").empty());
}

TEST_CASE("clauses: what binds looser than && stays whole, as does what is no expression") {
  for (const auto* whole :
       {"a && b || c", "a ? b && c : d", "a && b)", "(a && b", "a && 'x", "(a) + (b)", "a"})
    CHECK(parts(whole) == whole);
  const auto deep = std::string(100'000, '(') + "a && b" + std::string(100'000, ')');
  CHECK(conjuncts(deep).size() == 1);
}

TEST_CASE("clauses: an expression is taken apart at its outermost ||, brackets off") {
  const auto alternatives = [](std::string_view expression) {
    return fmt::format("{}", fmt::join(disjuncts(expression), " | "));
  };
  CHECK(alternatives("a || (b || (c)) || d && e") == "a | b | c | d && e");
  CHECK(alternatives("((a && b || c))") == "a && b | c");
  CHECK(alternatives("(a && b)") == "a && b");
  for (const auto* whole : {"a || b ? c : d", "a || b)", "(a || b", "a && (b || c)", "a ?: b || c"})
    CHECK(alternatives(whole) == whole);
}

TEST_CASE("clauses: what is said of the other ad only") {
  CHECK(over_target("TARGET.Pilot =?= \"TARGET.x\"") == "Pilot =?= \"TARGET.x\"");
  CHECK(over_target("isUndefined( target . A ) || true") == "isUndefined(  A ) || true");
  CHECK(over_target("True") == "True");
  CHECK(!over_target("TARGET.A > Disk"));
  CHECK(!over_target("MY.A > 1"));
  CHECK(!over_target("TARGET.3"));
  CHECK(!over_target("TARGET"));
}
