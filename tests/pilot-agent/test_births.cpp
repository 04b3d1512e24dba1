// Containers that the pod was made with a job's image in, by themselves; test_core_born.cpp has what the core
// makes of them.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/births.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

const Image k_made_with{"reg.example/made:1"};

struct OneBirth {
  OneBirth() {
    container.name = "payload-0";
    container.told.asked = k_made_with;
  }
  bool unborn() const {
    const auto* absent = std::get_if<Absent>(&container.state);
    return absent != nullptr && absent->unborn;
  }
  void waits(const std::string& reason, const std::string& message) {
    container.status.emplace();
    container.status->state = kube::ContainerStatus::State::waiting;
    container.status->reason = reason;
    container.status->message = message;
  }

  Policy policy{.pullers = true};
  Actions actions;
  References references{"n"};
  Pulls pulls{policy};
  Health health{5};
  Switches switches{policy, references, pulls, health, actions};
  Births births{policy, switches, pulls, actions};
  Container container;
  Time now{1000s};
};

}  // namespace

TEST_CASE("births: a container with a job's image is expected for as long as a bind may take") {
  OneBirth one;
  CHECK_FALSE(one.births.expect(one.container, one.now));
  CHECK(one.unborn());
  CHECK(std::get<Absent>(one.container.state).until == one.now + one.policy.bind_deadline);
  CHECK(one.container.proven == k_made_with);
  CHECK(taken<Note>(one.actions).empty());
}

TEST_CASE("births: one with the pilot's own image is no birth") {
  OneBirth one;
  one.container.told.asked = Image::home();
  one.waits("ErrImagePull", "manifest unknown");
  SUBCASE("that has yet to come") {}
  SUBCASE("that is there") {
    one.container.glue = 1;
  }
  CHECK_FALSE(one.births.expect(one.container, one.now));
  CHECK_FALSE(one.unborn());
  CHECK_FALSE(one.births.miscarried(one.container));
}

TEST_CASE("births: one that is there already is born, its image is on the node and its digest awaited") {
  OneBirth one;
  one.container.glue = 1;
  CHECK(one.births.expect(one.container, one.now));
  CHECK(one.container.learning_until);
  CHECK(one.pulls.may_switch(k_made_with, k_made_with.name(), one.now));
  const auto notes = taken<Note>(one.actions);
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().text == "event=born container=payload-0 image=reg.example/made:1");
}

TEST_CASE("births: the first trouble with its image is the end of one that is expected") {
  OneBirth one;
  one.births.expect(one.container, one.now);
  CHECK_FALSE(one.births.miscarried(one.container));
  one.waits("ContainerCreating", "");
  CHECK_FALSE(one.births.miscarried(one.container));
  one.waits("ErrImagePull", "manifest unknown");
  CHECK(one.births.miscarried(one.container));
  const auto notes = taken<Note>(one.actions);
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().text ==
        "event=not_born container=payload-0 image=reg.example/made:1 reason=\"manifest unknown\"");
  one.container.state = Absent{};  // it has been used since
  CHECK_FALSE(one.births.miscarried(one.container));
  one.container.state = Idle{};
  CHECK_FALSE(one.births.miscarried(one.container));
}
