#include "lib/base/config.hpp"

#include <doctest/doctest.h>

using namespace glidepod;

namespace {
struct Sample {
  std::string name = "pilot";
  std::int64_t count = 2;
  std::chrono::seconds grace{30};
  enum class Reuse : std::uint8_t { owner, never } reuse = Reuse::owner;
  std::string token;
  std::vector<std::string> rules{"default"};
  Config config{"GLIDEPOD_"};
  Sample() {
    config.text("name", &name, "a name");
    config.integer("count", &count, 1, 9, "a number");
    config.duration("grace", &grace, "a time");
    config.choice("reuse", &reuse, {{"owner", Reuse::owner}, {"never", Reuse::never}}, "when to reuse");
    config.list("rule", &rules, "rules", [](std::string_view rule) {
      return rule == "bad" ? Result<void>(error("must not be bad")) : Result<void>();
    });
    config
        .add("token", "", "16 letters", "a secret",
             [this](std::string_view value) -> Result<void> {
               if (value.size() != 16) return error("must be 16 letters");
               token = value;
               return {};
             })
        .secret()
        .in("letters")
        .from("0.3.0");
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
  CHECK(sample.reuse == Sample::Reuse::never);
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
  CHECK(sample.config.read_text("nonsense", "f").error().message() == "f:1: not of the form key = value");
  const char* const environment[] = {"GLIDEPOD_COUNT=no", nullptr};
  CHECK(sample.config.read_environment(environment).error().message() ==
        "environment variable GLIDEPOD_COUNT: count = 'no': must be a whole number from 1 to 9");
}

TEST_CASE("config: a missing file is an error only where it must exist") {
  Sample sample;
  CHECK(sample.config.read_file("/nonexistent/agent.conf", Config::Missing::allowed).ok());
  CHECK(sample.config.read_file("/nonexistent/agent.conf", Config::Missing::error).error().code() == ENOENT);
}

TEST_CASE("config: all that is wrong is told at once, with its line and what to do, and no secret") {
  Sample sample;
  CHECK(sample.config.problems(
            "name = x\ncout = 3\ncount = 10\nxyzzy = 1\nS3cr3tLine\nrule = good\nrule = bad\n"
            "token = S3cr3t\n",
            "f") == std::vector<std::string>{
                        "f:2: unknown setting 'cout'; 'count' is meant?",
                        "f:3: count = '10': must be a whole number from 1 to 9",
                        "f:4: unknown setting 'xyzzy'", "f:5: not of the form key = value",
                        "f:7: rule = 'bad': must not be bad", "f:8: token = '(hidden)': must be 16 letters"});
  CHECK(sample.config.problems("name = x\n# all is well\n", "f").empty());
}

TEST_CASE("config: the values in force, with where they come from, and no secret") {
  Sample sample;
  REQUIRE(sample.config.read_text("count=3\nrule=a\nrule=b\ntoken=S3cr3tS3cr3tS3cr\n", "f").ok());
  const char* const environment[] = {"GLIDEPOD_NAME=y", nullptr};
  REQUIRE(sample.config.read_environment(environment).ok());
  CHECK(sample.token == "S3cr3tS3cr3tS3cr");
  CHECK(
      sample.config.in_force().value() ==
      "  name = y\n      a name\n      from environment variable GLIDEPOD_NAME; default: pilot; since 0.1.0\n"
      "  count = 3\n      a number\n      from f:1; default: 2; since 0.1.0\n"
      "  grace = 30s\n      a time\n      by default; default: 30s; since 0.1.0\n"
      "  reuse = owner\n      when to reuse\n      by default; default: owner; since 0.1.0\n"
      "  rule = a | b\n      rules\n      from f:3; default: default; since 0.1.0\n"
      "  token = (hidden)\n      a secret\n      from f:4; default: empty; since 0.3.0\n");
  CHECK(sample.config.in_force({"count"}).value() ==
        "  count = 3\n      a number\n      from f:1; default: 2; since 0.1.0\n");
  CHECK(sample.config.in_force({"cuont"}).error().message() == "there is no key 'cuont'");
}

TEST_CASE("config: a key that is declared is in the help and on the page") {
  Config config;
  bool yes = false;
  std::string secret = "S3cr3t|";
  config.section("part");
  config.flag("on", &yes, "yes: a|b").from("0.2.0");
  config.text("hush", &secret, "psst").secret();
  CHECK(config.describe() == "[part]\n  on    yes: a|b [no]\n  hush  psst [(hidden)]\n");
  CHECK(config.markdown() ==
        "\n## [part]\n| key | meaning | default | what it may be | since |\n|---|---|---|---|---|\n"
        "| `on` | yes: a\\|b | `no` | one of: yes, no | 0.2.0 |\n"
        "| `hush` | psst; secret: never shown | `(hidden)` | any text | 0.1.0 |\n");
}
