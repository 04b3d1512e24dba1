#include <doctest/doctest.h>

#include "provisioner/decide/breaker.hpp"
#include "provisioner/service/clock.hpp"

using namespace glidepod::provisioner;
using namespace std::chrono_literals;

namespace {

// A system whose clock is set now and then.
struct System {
  Clock::Wall wall{1'700'000'000s};
  glidepod::SteadyTime steady{5000s};
  Clock clock{wall, steady};

  Clock::Reading after(std::chrono::seconds passed, std::chrono::seconds set = 0s) {
    wall += passed + set;
    steady += passed;
    return clock.read(wall, steady);
  }
};

}  // namespace

TEST_CASE("clock: it is the system's where nobody sets that") {
  System system;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const auto reading = system.after(7s);
    CHECK(reading.time == system.wall);
    CHECK(reading.stepped == 0s);
    CHECK_FALSE(reading.anew);
  }
}

TEST_CASE("clock: a step is told once, and come back from by a tenth of the time that passes") {
  for (const auto step : {3600s, -3600s}) {
    CAPTURE(step.count());
    System system;
    const auto before = system.after(60s).time;
    const auto stepped = system.after(60s, step);
    CHECK(stepped.stepped == step);
    CHECK(stepped.time == before + 60s + (step > 0s ? 6s : -6s));
    auto last = stepped.time;
    int cycles = 0;
    for (; system.clock.time() != system.wall; ++cycles) {
      REQUIRE(cycles < 1000);
      const auto reading = system.after(60s);
      CHECK(reading.stepped == 0s);
      CHECK(reading.time - last >= 54s);
      CHECK(reading.time - last <= 66s);
      last = reading.time;
    }
    CHECK(cycles == 599);  // 3,600 s at 6 s a minute, of which the first were above
  }
}

TEST_CASE("clock: one that runs a little fast is followed, and is no step") {
  System system;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const auto reading = system.after(60s, 1s);
    CHECK(reading.stepped == 0s);
    CHECK(reading.time == system.wall);
  }
}

TEST_CASE("clock: one that was a day off is left at once") {
  for (const auto step : {std::chrono::seconds(25h), std::chrono::seconds(-25h)}) {
    System system;
    const auto reading = system.after(60s, step);
    CHECK(reading.time == system.wall);
    CHECK(reading.stepped == step);
    CHECK(reading.anew);
    CHECK_FALSE(system.after(60s).anew);
  }
}

TEST_CASE("clock: five seconds are a step, and what is a day off is not more than that") {
  CHECK(System().after(60s, 4s).stepped == 0s);
  CHECK(System().after(60s, 5s).stepped == 5s);
  CHECK_FALSE(System().after(60s, 24h).anew);
  CHECK(System().after(60s, 24h + 1s).anew);
}

TEST_CASE("clock: a breaker's pause is as long as it was to be, whatever the clock is set to") {
  const PolicySettings settings{.breaker_failures = 3, .breaker_first_pause = 600s};
  for (const auto step : {0s, 7200s, -7200s}) {
    CAPTURE(step.count());
    System system;
    Breaker breaker;
    GroupSupply supply;
    for (int pod = 0; pod < 3; ++pod) supply.failures.push_back(Outcome{system.clock.time(), "", ""});
    CHECK(consult(breaker, supply, settings, system.after(60s).time).allowed == 0);
    REQUIRE(breaker.open);
    int cycles = 1;
    for (auto set = step; consult(breaker, supply, settings, system.after(60s, set).time).allowed == 0;
         set = 0s)
      REQUIRE(++cycles < 100);
    // With the wall clock: 1, and 130.
    CHECK(cycles >= 9);
    CHECK(cycles <= 12);
  }
}
