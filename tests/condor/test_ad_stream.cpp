#include "lib/condor/ad_stream.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::condor;

namespace {

struct Collected {
  std::vector<Ad> ads;
  std::vector<std::string> bad;
  Result<void> end;
};

Collected collect(std::string_view text, std::size_t piece = std::string_view::npos) {
  Collected result;
  AdStream stream([&](Ad ad) { result.ads.push_back(std::move(ad)); },
                  [&](std::string why) { result.bad.push_back(std::move(why)); });
  for (std::size_t at = 0; at < text.size(); at += piece) {
    stream.feed(text.substr(at, piece));
    if (piece == std::string_view::npos) break;
  }
  result.end = stream.end();
  return result;
}

// As condor_q of HTCondor 23.9.6 wrote it.
constexpr std::string_view k_answer = R"([
{
  "DiskUsage": 45,
  "Id": 2,
  "JobCount": 2,
  "JobIds": "14.0 14.1",
  "JobStatus": 1,
  "JobUniverse": 5,
  "Owner": "bob",
  "RequestCpus": "\/Expr(ifthenelse(isUndefined(Foo),3,4))\/",
  "RequestDisk": "\/Expr(DiskUsage)\/",
  "RequestMemory": "\/Expr(max({ 2000,MemoryUsage * 3 / 2 }))\/"
}
,
{
  "Id": 6,
  "JobCount": 7,
  "RequestCpus": 2,
  "RequestMemory": "\/Expr(2048 * 2)\/",
  "Note": "a } { \" in a string"
}
]
)";

}  // namespace

TEST_CASE("ad_stream: ads come out whole however the text is cut") {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::string_view::npos}) {
    const auto got = collect(k_answer, piece);
    CHECK(got.end.ok());
    CHECK(got.bad.empty());
    REQUIRE(got.ads.size() == 2);
    CHECK(got.ads[0].evaluate("RequestCpus").to_string() == "3");
    CHECK(got.ads[0].evaluate("requestdisk").to_string() == "45");
    CHECK(got.ads[0].evaluate("RequestMemory").to_string() == "2000");
    CHECK(got.ads[1].evaluate("RequestMemory").to_string() == "4096");
    CHECK(got.ads[1].evaluate("Note").to_string() == "a } { \" in a string");
  }
}

TEST_CASE("ad_stream: no ads is an empty answer or an empty list") {
  CHECK(collect("").ads.empty());
  CHECK(collect("").end.ok());
  CHECK(collect("[\n]\n").end.ok());
}

TEST_CASE("ad_stream: a bad ad costs only itself") {
  for (const std::string_view bad : {"{\n \"a\": 1,,\n}", "{\n \"a\": \"x\n}", "{\n \"a\": \"\xff\"\n}",
                                     "{\n \"a\": 1", "{\n \"a\": {\n}", "{ \"a\": 1 \"b\" }"}) {
    CAPTURE(bad);
    const auto got = collect(fmt::format("[\n{{ \"b\": 1 }}\n,\n{}\n,\n{{ \"b\": 2 }}\n]\n", bad));
    CHECK(got.bad.size() == 1);
    REQUIRE(got.ads.size() == 2);
    CHECK(got.ads[1].evaluate("b").to_string() == "2");
  }
}

TEST_CASE("ad_stream: an ad without end is bounded") {
  std::string text = "{\n \"a\": \"";
  text.append(std::size_t{3} << 20, 'x');
  const auto got = collect(text + "\"\n}\n,\n{ \"b\": 2 }\n");
  REQUIRE(got.bad.size() == 1);
  CHECK(got.bad[0] == "longer than 1048576 bytes");
  CHECK(got.ads.size() == 1);
  const auto deep = collect("{ \"a\": " + std::string(10'000, '['));
  CHECK_FALSE(deep.end.ok());
}

TEST_CASE("ad_stream: an answer that is cut off is an error") {
  CHECK(collect("[\n{ \"a\": 1").end.error().message() == "the answer ends within an ad");
}

TEST_CASE("ad_stream: types of values") {
  const auto ad = ad_from_json(
      R"({"n": null, "t": true, "i": -3, "u": 18446744073709551615, "r": 1.5, "l": [1, "a"], "o": {"i": 9}})");
  REQUIRE(ad.ok());
  CHECK(ad->evaluate("n").is(Value::Type::undefined));
  CHECK(ad->evaluate("t").to_string() == "true");
  CHECK(ad->evaluate("i").integer == -3);
  CHECK(ad->evaluate("u").is(Value::Type::real));
  CHECK(ad->evaluate("l").to_string() == "{ 1,a }");
  CHECK(ad->evaluate("o").is(Value::Type::undefined));
}
