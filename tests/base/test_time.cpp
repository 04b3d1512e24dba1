#include "lib/base/time.hpp"

#include <doctest/doctest.h>

using namespace glidepod;

TEST_CASE("time: RFC 3339, written and read") {
  CHECK(time_text(WallTime{}) == "1970-01-01T00:00:00Z");
  CHECK(time_text(*parse_time("2026-01-31T12:00:00.5Z")) == "2026-01-31T12:00:00Z");
  CHECK(time_text(*parse_time("2026-01-31T12:00:00.5Z"), Precision::microseconds) ==
        "2026-01-31T12:00:00.500000Z");
  CHECK(time_text(*parse_time("2026-01-31T12:00:00+02:00")) == "2026-01-31T10:00:00Z");
  CHECK_FALSE(parse_time("yesterday"));
}

TEST_CASE("time: how long, for people") {
  CHECK(duration_text(-5) == "0 s");
  CHECK(duration_text(119) == "119 s");
  CHECK(duration_text(120) == "2 min");
  CHECK(duration_text(7200) == "2 h");
}
