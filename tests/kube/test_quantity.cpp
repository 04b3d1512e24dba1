#include "lib/kube/quantity.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace glidepod::kube;

TEST_CASE("quantity: whole units and thousandths, with every suffix of Kubernetes") {
  struct Row {
    const char* text;
    std::int64_t units, thousandths;
  };
  for (const Row& row :
       {Row{"0", 0, 0}, Row{"1", 1, 1000}, Row{"1.5", 2, 1500}, Row{".5", 1, 500}, Row{"2.", 2, 2000},
        Row{"250m", 1, 250}, Row{"0.1", 1, 100}, Row{"10u", 1, 1}, Row{"100000n", 1, 1},
        Row{"2k", 2000, 2'000'000}, Row{"1M", 1'000'000, 1'000'000'000}, Row{"1Ki", 1024, 1'024'000},
        Row{"1Mi", 1 << 20, 1'048'576'000}, Row{"1e3", 1000, 1'000'000}, Row{"1E3", 1000, 1'000'000},
        Row{"1500e-3", 2, 1500}, Row{"10e-1", 1, 1000}, Row{"9", 9, 9000}}) {
    CAPTURE(std::string(row.text));
    CHECK(parse_quantity(row.text).value() == row.units);
    CHECK(parse_milli(row.text).value() == row.thousandths);
  }
  CHECK(parse_quantity("1G").value() == 1'000'000'000);
  CHECK(parse_quantity("1Gi").value() == 1 << 30);
  CHECK(parse_quantity("1T").value() == 1'000'000'000'000);
  CHECK(parse_quantity("1Ti").value() == std::int64_t{1} << 40);
  CHECK(parse_quantity("1P").value() == 1'000'000'000'000'000);
  CHECK(parse_quantity("1Pi").value() == std::int64_t{1} << 50);
  CHECK(parse_quantity("1E").value() == 1'000'000'000'000'000'000);
  CHECK(parse_quantity("1e18").value() == 1'000'000'000'000'000'000);
  CHECK(parse_quantity("1000000000000000000e-18").value() == 1);
}

TEST_CASE("quantity: what is none, and what is too large, is an error that quotes it") {
  for (const char* bad :
       {"",     "m",     "-1",   "+1",     "1.2.3", ".",   "1x",   "1ki", "1mi", "1 Gi", "1e",
        "1e3x", "1e1e1", "1e19", "0.1e19", "1e-19", "10E", "1e99", "/1",  ":1",  "one"}) {
    CAPTURE(std::string(bad));
    const auto parsed = parse_quantity(bad);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().message().ends_with(std::string("found \"") + bad + "\""));
  }
  CHECK(parse_quantity(std::string(30, '0')).value() == 0);
  CHECK_FALSE(parse_quantity(std::string(31, '0')).ok());
  CHECK(parse_quantity("9223372036854775807").value() == std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(parse_quantity("9223372036854775808").ok());
  CHECK_FALSE(parse_milli("1E").ok());
}
