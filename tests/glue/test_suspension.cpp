#include "glue/suspension.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/glue/stand_ins.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using namespace glidepod::glue::stand_ins;

TEST_CASE("suspension: an order comes to all at once, and to those that are forked meanwhile") {
  scene = {.processes = {process(10, 'S'), process(11, 'S')}};
  Loop loop = Loop::create().value();
  Suspension suspension(loop);
  CHECK_FALSE(suspension.suspended());
  suspension.order(SIGTSTP);
  CHECK(suspension.suspended());
  CHECK(scene.taken() == Sent{{10, SIGTSTP}, {11, SIGTSTP}});
  scene.processes.push_back(process(12, 'S'));
  pass(loop, Milliseconds(1));
  CHECK(scene.taken() == Sent{{12, SIGTSTP}});
  // Nothing new came since: the next ones are none of it.
  scene.processes.push_back(process(13, 'S'));
  pass(loop, std::chrono::seconds(1));
  CHECK(scene.taken() == Sent{});
}

TEST_CASE("suspension: a later order takes the place of the earlier") {
  scene = {.processes = {process(10, 'R')}};
  Loop loop = Loop::create().value();
  Suspension suspension(loop);
  suspension.order(SIGSTOP);
  suspension.order(SIGCONT);
  CHECK_FALSE(suspension.suspended());
  CHECK(scene.taken() == Sent{{10, SIGSTOP}, {10, SIGCONT}});
  SUBCASE("which has come to all") {
    for (int i = 0; i < 100; ++i) pass(loop, Milliseconds(10));
  }
  SUBCASE("which nobody is there for") {
    suspension.order(SIGSTOP);
    scene.processes.clear();
    suspension.order(SIGCONT);
    scene.sent.clear();
    scene.processes = {process(11, 'S')};
    pass(loop, std::chrono::seconds(1));
  }
  CHECK(scene.taken() == Sent{});
}

TEST_CASE("suspension: what does not stop is told again for two seconds") {
  scene = {.processes = {process(10, 'R')}};
  Loop loop = Loop::create().value();
  Suspension suspension(loop);
  suspension.order(SIGSTOP);
  for (int i = 0; i < 199; ++i) pass(loop, Milliseconds(10));
  CHECK(scene.taken().size() > 150);
  pass(loop, Milliseconds(9));
  scene.sent.clear();
  pass(loop, Milliseconds(1));
  CHECK(scene.taken() == Sent{{10, SIGSTOP}});
  pass(loop, std::chrono::seconds(1));
  CHECK(scene.taken() == Sent{});
}

TEST_CASE("suspension: a suspended job can be woken for its end, and nobody else") {
  scene = {.processes = {process(10, 'T')}};
  Loop loop = Loop::create().value();
  Suspension suspension(loop);
  suspension.wake();
  CHECK(scene.taken() == Sent{});
  suspension.order(SIGSTOP);
  CHECK(scene.taken() == Sent{{10, SIGSTOP}});
  suspension.wake();
  CHECK(scene.taken() == Sent{{10, SIGCONT}});
  CHECK(suspension.suspended());
}

TEST_CASE("suspension: nobody is signalled after its stop") {
  scene = {.processes = {process(10, 'R')}};
  Loop loop = Loop::create().value();
  Suspension suspension(loop);
  suspension.order(SIGSTOP);
  suspension.stop();
  scene.sent.clear();
  pass(loop, std::chrono::seconds(1));
  CHECK(scene.taken() == Sent{});
}
