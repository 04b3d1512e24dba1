#include "lib/condor/classad.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/job_ad.hpp"

using namespace glidepod;
using namespace glidepod::condor;

namespace {

Ad job() {
  Ad ad;
  ad.set("RequestCpus", Value::of(std::int64_t{1}));
  ad.set("NumJobStarts", Value::of(std::int64_t{0}));
  ad.set("ResidentSetSize", Value::of(std::int64_t{7500000}));
  ad.set("ImageSize", Value::of(std::int64_t{45}));
  ad.set_expression("MemoryUsage", "((ResidentSetSize + 1023) / 1024)");
  ad.set_expression("RequestMemory",
                    "ifthenelse(MemoryUsage isnt undefined,MemoryUsage,(ImageSize + 1023) / 1024)");
  return ad;
}

}  // namespace

// Every right side is what HTCondor 23.9.6 said: condor_q 9.0 -af 'EXPRESSION'.
TEST_CASE("classad: expressions give what HTCondor gives") {
  static constexpr const char* table[][2] = {
      {"max({2000,undefined})", "2000"},
      {"max({2000,undefined*3/2})", "2000"},
      {"min({3,undefined})", "3"},
      {"max({})", "undefined"},
      {"max({1,2.5})", "2.5"},
      {"max({1,\"a\"})", "error"},
      {"max(1,2)", "error"},
      {"max({true,1})", "1"},
      {"7/2", "3"},
      {"7/2.0", "3.5"},
      {"7%3", "1"},
      {"1/0", "error"},
      {"1.0/0", "error"},
      {"int(7.9)", "7"},
      {"int(\"12\")", "12"},
      {"int(\"x\")", "error"},
      {"int(undefined)", "undefined"},
      {"int(true)", "1"},
      {"real(\"2.5\")", "2.5"},
      {"floor(2.7)", "2"},
      {"ceiling(2.2)", "3"},
      {"ceiling(5)", "5"},
      {"round(2.5)", "2"},
      {"round(3.5)", "4"},
      {"quantize(5,4)", "8"},
      {"quantize(5,{2,4,8})", "8"},
      {"quantize(50,{2,4,8})", "56"},
      {"quantize(7,2.5)", "7.5"},
      {"quantize(undefined,4)", "error"},
      {"quantize(5,{})", "5"},
      {"ifthenelse(undefined,1,2)", "undefined"},
      {"ifthenelse(1,5,6)", "5"},
      {"ifthenelse(\"a\",5,6)", "error"},
      {"ifthenelse(false,1/0,3)", "3"},
      {"isundefined(nosuch)", "true"},
      {"iserror(1/0)", "true"},
      {"undefined || true", "true"},
      {"undefined && false", "false"},
      {"undefined && true", "undefined"},
      {"error || true", "error"},
      {"true || error", "true"},
      {"false && error", "false"},
      {"1 && 2", "true"},
      {"1 || \"a\"", "true"},
      {"1 == \"a\"", "error"},
      {"\"A\" == \"a\"", "true"},
      {"\"A\" =?= \"a\"", "false"},
      {"1 =?= 1.0", "false"},
      {"undefined =?= undefined", "true"},
      {"undefined == 1", "undefined"},
      {"1 is 1", "true"},
      {"1 isnt undefined", "true"},
      {"true ? 1 : 2", "1"},
      {"undefined ? 1 : 2", "undefined"},
      {"undefined ?: 3", "3"},
      {"4 ?: 3", "4"},
      {"!true", "false"},
      {"!1", "false"},
      {"!\"a\"", "error"},
      {"+3", "3"},
      {"1+true", "2"},
      {"3 > 2 > 1", "false"},
      {"\"a\" < \"b\"", "true"},
      {"2 + 3 * 4", "14"},
      {"(2 + 3) * 4", "20"},
      {"10 - 3 - 2", "5"},
      {"2 * 3 % 4", "2"},
      {"1e3", "1000"},
      {".5", "0.5"},
      {"MY.RequestCpus * 3", "3"},
      {"TARGET.Cpus", "undefined"},
      {"RequestMemory", "7325"},
      {"{1,2}[1]", "2"},
      {"1 !=2 && 3", "true"},
      {"1 < undefined", "undefined"},
      {"undefined > 3 || true", "true"},
      {"3 * ifthenelse(isUndefined(Foo), 2, 3)", "6"},
      {"\"a\\\"b\"", "a\"b"},
      {"1 == true", "true"},
      {"NumJobStarts * 2", "0"},
      {"sin(1)", "error"},
  };
  const auto ad = job();
  for (const auto& row : table) {
    const std::string expression = row[0], wanted = row[1];
    CAPTURE(expression);
    CHECK(ad.evaluate_expression(expression).to_string() == wanted);
  }
}

// The answers are HTCondor's (classad_answers says how they were had). What is not known here may be the
// error value; what has a value has HTCondor's.
TEST_CASE("classad: of 6,000 expressions each has HTCondor's value, or the error value") {
  // More of them, where somebody has had HTCondor answer more.
  const char* more = std::getenv("GLIDEPOD_CLASSAD_ANSWERS");
  const auto lines = read_file(more ? more : CLASSAD_ANSWERS).value();
  const auto marked = [](const Value& value) -> std::string {
    switch (value.type) {
      case Value::Type::undefined:
        return "u";
      case Value::Type::error:
        return "e";
      case Value::Type::boolean:
        return value.boolean ? "b:true" : "b:false";
      case Value::Type::integer:
        return "i:" + std::to_string(value.integer);
      case Value::Type::real:
        return "r";
      case Value::Type::string:
        return "s:" + fmt::format("{}", fmt::join(split(value.text, '\\'), "\\\\"));
      case Value::Type::list:
        return "l";
    }
    return {};
  };
  int known = 0, refused = 0;
  std::string guesses;
  for (const auto& line : split(lines, '\n')) {
    const auto tab = line.find('\t');
    if (tab == std::string::npos) continue;
    const auto expression = line.substr(0, tab);
    const auto answer = line.substr(tab + 1);
    const auto value = Ad().evaluate_expression(expression);
    const auto here = marked(value);
    const bool same =
        here == "r" ? answer.starts_with("r:") && std::stod(answer.substr(2)) == value.real : here == answer;
    if (same)
      ++known;
    else if (here == "e")
      ++refused;
    else
      guesses += fmt::format("{} is {}, here {}\n", expression, answer,
                             here == "r" ? std::to_string(value.real) : here);
  }
  MESSAGE(known, " known, ", refused, " refused");
  CHECK(guesses == "");
  CHECK(known > 4 * refused);
}

TEST_CASE("classad: what is not an expression, or too much of one, is the error value") {
  Ad ad;
  ad.set_expression("A", "B + 1");
  ad.set_expression("B", "A + 1");
  ad.set_expression("C", "D + D + D + D + D + D + D + D");
  ad.set_expression("D", "E + E + E + E + E + E + E + E");
  ad.set_expression("E", "F + F + F + F + F + F + F + F");
  ad.set_expression("F", "G + G + G + G + G + G + G + G");
  ad.set_expression("G", "H + H + H + H + H + H + H + H");
  ad.set("H", Value::of(std::int64_t{1}));
  for (const auto* name : {"A", "C"}) CHECK(ad.evaluate(name).is(Value::Type::error));
  CHECK(ad.evaluate("G").to_string() == "8");
  for (const auto* text :
       {"", "1 +", "(1", "1)", "{1", "f(1", "\"a", "1 2", "0x10", "2K", "$", "MY.", "a ? b",
        "9223372036854775807 + 1", "(0-9223372036854775807-1) / -1", "int(1e30)"}) {
    CAPTURE(text);
    CHECK(ad.evaluate_expression(text).is(Value::Type::error));
  }
  CHECK(ad.evaluate_expression(std::string(100'000, '(')).is(Value::Type::error));
  CHECK(ad.evaluate_expression(std::string(2'000, '-') + "1").to_string() == "1");
  CHECK(ad.evaluate_expression(std::string(100'000, '-') + "1").is(Value::Type::error));
}

TEST_CASE("classad: attributes of an expression") {
  const auto names = [](std::string_view text) {
    const auto found = referenced_attributes(text);
    return found ? fmt::format("{}", fmt::join(found.value(), " ")) : found.error().message();
  };
  CHECK(names("((DESIRED_Sites is undefined)|| stringListMember(\"SDSC-PRP\",DESIRED_Sites,\",\"))&& "
              "(!isUndefined(ProjectName))&& (!isUndefined(SingularityImage))") ==
        "DESIRED_Sites ProjectName SingularityImage");
  CHECK(names("MY.Owner == \"x y\" && target.Cpus > 1 && owner != undefined") == "Owner Cpus");
  CHECK(names("a.b + c") == "a c");
  CHECK(names("true") == "");
  CHECK(names("(a") == "')' is missing");
  CHECK(names("a)") == "')' closes nothing");
  CHECK(names("\"a") == "a quote is not closed");
}

TEST_CASE("classad: what is written in an ad") {
  Ad ad;
  ad.set("B", Value::of(std::string("x \"y\"")));
  ad.set("a",
         Value::of({Value::of(std::string("x")), Value::of(std::int64_t{1}), Value::of({Value::of(true)})}));
  ad.set_expression("C", "B == \"z\"");
  CHECK(ad.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(ad.written("A") == "{ \"x\",1,{ true } }");
  CHECK(ad.written("b") == "\"x \\\"y\\\"\"");
  CHECK(ad.written("c") == "B == \"z\"");
}

TEST_CASE("classad: a text as a string literal, and back") {
  CHECK(quote("a\"b\\c") == "\"a\\\"b\\\\c\"");
  for (const char* text : {"", "a", "a\"b\\c", "\\\\", "\"", "x y\tz"})
    CHECK(string_literal(quote(text)) == text);
}

TEST_CASE("classad: with a slot, TARGET is the slot, and so is what the job does not have") {
  Ad job, slot;
  slot.set("Cpus", Value::of(std::int64_t{16}));
  slot.set("Owner", Value::of(std::string("nobody")));
  slot.set_expression("Memory", "Cpus * 2");
  job.set("Owner", Value::of(std::string("alice")));
  const auto with_slot = [&](const std::string& expression) {
    job.set_expression("Asked", expression);
    bool used = false;
    const auto value = job.evaluate("Asked", slot, used);
    return fmt::format("{}{}", value.to_string(), used ? " by the slot" : "");
  };
  CHECK(with_slot("ifThenElse(Cpus > 8, 4, 2)") == "4 by the slot");
  CHECK(with_slot("target.CPUS * 2") == "32 by the slot");
  CHECK(with_slot("MY.Cpus") == "undefined");
  CHECK(with_slot("Owner") == "alice");
  CHECK(with_slot("TARGET.Owner") == "nobody by the slot");
  CHECK(with_slot("Disk") == "undefined");
  CHECK(with_slot("TARGET.Disk + 1") == "undefined");
  CHECK(with_slot("TARGET.Memory") == "error by the slot");
  bool used = false;
  CHECK(job.evaluate("Cpus", slot, used).is(Value::Type::undefined));
  CHECK_FALSE(used);
  // Alone it has none.
  CHECK(job.evaluate_expression("ifThenElse(Cpus > 8, 4, 2)").is(Value::Type::undefined));
}
