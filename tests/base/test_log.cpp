#include "lib/base/log.hpp"

#include <doctest/doctest.h>

using glidepod::quoted;

TEST_CASE("log: a value cannot break its line or pretend to be another key") {
  CHECK(quoted("plain-1.2/x:y") == "plain-1.2/x:y");
  CHECK(quoted("") == "\"\"");
  CHECK(quoted("a b=c") == "\"a b=c\"");
  CHECK(quoted("say \"hi\"\n\x1b[31m") == "\"say \\\"hi\\\"\\n?[31m\"");
}
