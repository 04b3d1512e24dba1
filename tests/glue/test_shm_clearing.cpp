#include "glue/shm_clearing.hpp"

#include <doctest/doctest.h>

#include "tests/glue/stand_ins.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using namespace glidepod::glue::stand_ins;

namespace {
constexpr auto k_pause = std::chrono::seconds(10);

struct Shm {
  Loop loop = Loop::create().value();
  int empty = 0;
  ShmClearing clearing{loop, [this] { ++empty; }};

  void removes(std::uint32_t files) {
    scene.last().tell(Cleaned{files, true});
    CHECK(clearing.ended(scene.last().pid));
  }
};
}  // namespace

TEST_CASE("shm clearing: where only root has anything no child is made") {
  scene = {};
  Shm shm;
  shm.clearing.begin();
  CHECK(shm.empty == 1);
  CHECK(scene.begun.empty());
}

TEST_CASE("shm clearing: one child after the other, each with its owner's rights, until nothing is left") {
  scene = {.owner = 5001};
  Shm shm;
  shm.clearing.begin();
  REQUIRE(scene.begun.size() == 1);
  CHECK(scene.last().user.uid == 5001);
  CHECK(scene.last().user.gid == 5001);
  CHECK(scene.last().folders == std::vector<std::string>{"/dev/shm"});
  CHECK_FALSE(shm.clearing.ended(scene.last().pid + 1));
  pass(shm.loop, std::chrono::hours(1));
  CHECK(scene.begun.size() == 1);
  scene.owner = 5002;
  shm.removes(3);
  CHECK(scene.log.back() == "event=cleared folder=/dev/shm removed=3");
  pass(shm.loop, Milliseconds(0));
  REQUIRE(scene.begun.size() == 2);
  CHECK(scene.last().user.uid == 5002);
  CHECK(scene.log.back() == "event=clearing folder=/dev/shm uid=5002");
  scene.owner.reset();
  shm.removes(1);
  CHECK(shm.empty == 0);
  pass(shm.loop, Milliseconds(0));
  CHECK(shm.empty == 1);
  CHECK(scene.begun.size() == 2);
}

TEST_CASE("shm clearing: a try in vain is made again after ten seconds") {
  scene = {.owner = 5001};
  Shm shm;
  std::size_t tries = 1;
  SUBCASE("that has removed nothing") {
    shm.clearing.begin();
    shm.removes(0);
  }
  SUBCASE("that was killed") {
    shm.clearing.begin();
    scene.last().end();
    CHECK(shm.clearing.ended(scene.last().pid));
  }
  SUBCASE("for which no child could be made") {
    scene.no_child = true;
    shm.clearing.begin();
    scene.no_child = false;
    tries = 0;
  }
  pass(shm.loop, k_pause - Milliseconds(1));
  CHECK(scene.begun.size() == tries);
  pass(shm.loop, Milliseconds(1));
  CHECK(scene.begun.size() == tries + 1);
  CHECK(shm.empty == 0);
}
