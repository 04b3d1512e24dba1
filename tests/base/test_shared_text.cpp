#include "lib/base/shared_text.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace glidepod;

TEST_CASE("shared text: a copy is the same one, as long as anybody has it") {
  SharedText a = "registry.example.org/pilot:1";
  CHECK(a.only());
  auto b = a;
  CHECK(a.str().data() == b.str().data());
  CHECK_FALSE(a.only());
  a = "other";
  CHECK(b.only());
  CHECK(b == "registry.example.org/pilot:1");
  b = b;  // NOLINT
  CHECK(b.only());
  auto c = std::move(b);
  CHECK(c.only());
  CHECK(SharedText().str().empty());
  CHECK(SharedText("").empty());
  CHECK(sizeof(SharedText) == sizeof(void*));
}

TEST_CASE("shared text: it compares and prints as any text") {
  const SharedText a = "a";
  CHECK(a == "a");
  CHECK(a == std::string("a"));
  CHECK("a" == a);
  CHECK(a != SharedText("b"));
  CHECK(a < SharedText("b"));
  CHECK(SharedText() < a);
  const std::map<std::string, int, std::less<>> numbers = {{"a", 1}};
  CHECK(numbers.find(a)->second == 1);
  CHECK(fmt::format("<{:>2}>", a) == "< a>");
}

TEST_CASE("text pool: a text that is there already is found, and nobody's is forgotten") {
  TextPool pool;
  SharedText a = pool.of("x"), b = "x";
  pool.share(b);
  CHECK(a.str().data() == b.str().data());
  CHECK(pool.of("").empty());
  a = {};
  pool.tidy();
  CHECK(pool.size() == 1);
  b = {};
  pool.tidy();
  CHECK(pool.size() == 0);
}

TEST_CASE("rare: a value or none, each copy with its own") {
  Rare<int> a;
  CHECK_FALSE(a);
  a = 3;
  auto b = a;
  *b = 4;
  CHECK(*a == 3);
  CHECK(*b == 4);
  a.emplace();
  CHECK(*a == 0);
  CHECK(b.copy() == 4);
  CHECK(Rare<int>().copy() == std::nullopt);
}
