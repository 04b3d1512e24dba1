#include "lib/http/failure.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::http;
using Kind = Failure::Kind;

namespace {
Failure of_status(int status) {
  return {.kind = Kind::status, .status = status};
}
}  // namespace

TEST_CASE("failure: what may succeed later, and what cannot have had an effect") {
  struct Row {
    int status;
    bool retriable, rejected;
  };
  for (const auto& row :
       {Row{302, false, false}, Row{399, false, false}, Row{400, false, true}, Row{401, false, true},
        Row{403, false, true}, Row{404, false, true}, Row{408, true, false}, Row{409, true, true},
        Row{422, false, true}, Row{429, true, true}, Row{499, false, true}, Row{500, true, false},
        Row{503, true, false}, Row{599, true, false}}) {
    CAPTURE(row.status);
    CHECK(of_status(row.status).retriable() == row.retriable);
    CHECK(of_status(row.status).rejected() == row.rejected);
    auto later = of_status(row.status);
    later.earlier = Failure::Effect::unknown;
    CHECK_FALSE(later.rejected());
  }
  for (const auto kind : {Kind::transport, Kind::nonsense}) CHECK(Failure{.kind = kind}.retriable());
  CHECK_FALSE(Failure{.kind = Kind::nonsense, .status = 404}.rejected());
  CHECK_FALSE(Failure{.lost = {.sent = true}}.rejected());
  CHECK(Failure{.lost = {.sent = false}}.rejected());
  CHECK_FALSE(Failure{.earlier = Failure::Effect::unknown, .lost = {.sent = false}}.rejected());
}

TEST_CASE("failure: in words it is one line, and an Error has it as its fact") {
  CHECK(Failure{.message = "a\nb"}.to_string() == "no answer from the API: a");
  CHECK(Failure{.kind = Kind::nonsense, .message = "no JSON"}.to_string() ==
        "unintelligible answer from the API: no JSON");
  auto failure = of_status(403);
  failure.message = "no";
  CHECK(failure.to_string() == "403: no");
  failure.reason = "Forbidden";
  CHECK(failure.to_string() == "403 Forbidden: no");
  CHECK(Failure::of(failure.to_error()).status == 403);
  const auto lost = Failure::of(Error("gone").with(Lost{.why = Lost::Why::timeout, .sent = false}));
  CHECK(lost.kind == Kind::transport);
  CHECK(lost.message == "gone");
  CHECK(lost.lost.why == Lost::Why::timeout);
  CHECK_FALSE(lost.lost.sent);
  CHECK(Failure::of(Error("gone")).lost.sent);
}

TEST_CASE("failure: pauses double up to ten seconds, and are never shorter than the server asks for") {
  const auto pause = [](int attempt, double random) {
    return backoff(attempt, random, of_status(503)).count();
  };
  CHECK(pause(1, 1) == 100);
  CHECK(pause(1, 0) == 50);
  CHECK(pause(2, 1) == 200);
  CHECK(pause(7, 1) == 6400);
  CHECK(pause(8, 1) == 10'000);
  CHECK(pause(1000, 0.5) == 7500);
  auto failure = of_status(429);
  failure.retry_after = std::chrono::seconds(3);
  CHECK(backoff(1, 1, failure) == Milliseconds(3000));
  CHECK(backoff(8, 1, failure) == Milliseconds(10'000));
}
