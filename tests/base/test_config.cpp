#include "lib/base/config.hpp"

#include <doctest/doctest.h>

using namespace glidepod;

namespace {
struct Sample {
  std::string name = "pilot";
  std::int64_t count = 2;
  std::chrono::seconds grace{30};
  int reuse = 0;
  std::vector<std::string> rules{"default"};
  Config config{"GLIDEPOD_"};
  Sample() {
    config.text("name", &name, "a name");
    config.integer("count", &count, 1, 9, "a number");
    config.duration("grace", &grace, "a time");
    config.choice("reuse", &reuse, {"owner", "never"}, "when to reuse");
    config.list("rule", &rules, "rules");
  }
};
}  // namespace

TEST_CASE("config: defaults, then the file, then the environment") {
  Sample sample;
  REQUIRE(
      sample.config.read_text("# comment\nname = x y\ncount=3\ngrace = 2m\nrule = a\nrule = b\n", "f").ok());
  CHECK(sample.name == "x y");
  CHECK(sample.grace == std::chrono::seconds(120));
  CHECK(sample.rules == std::vector<std::string>{"a", "b"});
  const char* const environment[] = {"GLIDEPOD_COUNT=9",   "GLIDEPOD_REUSE=never", "GLIDEPOD_UNKNOWN=1",
                                     "GLIDEPOD_RULE=c\nd", "OTHER_COUNT=1",        nullptr};
  REQUIRE(sample.config.read_environment(environment).ok());
  CHECK(sample.count == 9);
  CHECK(sample.reuse == 1);
  CHECK(sample.rules == std::vector<std::string>{"c", "d"});
}

TEST_CASE("config: a wrong value names the key, the value and what is allowed") {
  Sample sample;
  CHECK(sample.config.read_text("\ncount = 10", "agent.conf").error().message() ==
        "agent.conf:2: count = '10': must be a whole number from 1 to 9");
  CHECK(sample.config.read_text("reuse = maybe", "f").error().message() ==
        "f:1: reuse = 'maybe': must be one of: owner, never");
  CHECK(sample.config.read_text("grace = soon", "f").error().message() ==
        "f:1: grace = 'soon': must be a time such as 90s, 15m, 2h or 1d");
  CHECK(sample.config.read_text("colour = red", "f").error().message() == "f:1: unknown setting 'colour'");
  CHECK(sample.config.read_text("nonsense", "f").error().message() ==
        "f:1: 'nonsense' is not of the form key = value");
  const char* const environment[] = {"GLIDEPOD_COUNT=no", nullptr};
  CHECK(sample.config.read_environment(environment).error().message() ==
        "environment variable GLIDEPOD_COUNT: count = 'no': must be a whole number from 1 to 9");
}

TEST_CASE("config: a missing file is an error only where it must exist") {
  Sample sample;
  CHECK(sample.config.read_file("/nonexistent/agent.conf", Config::Missing::allowed).ok());
  CHECK(sample.config.read_file("/nonexistent/agent.conf", Config::Missing::error).error().code() == ENOENT);
}
