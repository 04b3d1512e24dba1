// When it is counted what a job has on disk; what is counted is in test_counting.cpp.
#include <doctest/doctest.h>
#include <signal.h>

#include "glue/counting.hpp"
#include "tests/glue/stand_ins.hpp"

using namespace glidepod;
using namespace glidepod::glue;
using namespace glidepod::glue::stand_ins;

namespace {
using std::chrono::seconds;

struct Disk {
  Loop loop = Loop::create().value();
  Counting counting{loop, {.uid = 5001, .gid = 5001, .groups = {}}, {}};

  void counts(std::int64_t kib) {
    scene.last().tell(Counted{kib, true});
    CHECK(counting.ended(scene.last().pid));
  }
  // Whether a question has a count begun.
  bool begins() {
    const auto before = scene.begun.size();
    counting.begin();
    return scene.begun.size() > before;
  }
};
}  // namespace

TEST_CASE("counting: one at a time, and the next one 50 s after its end") {
  scene = {};
  Disk disk;
  CHECK(disk.counting.result().kib == 0);
  CHECK(disk.counting.result().complete);
  CHECK(disk.begins());
  CHECK(scene.last().user.uid == 5001);
  CHECK(scene.last().folders == k_disk_folders);
  CHECK_FALSE(disk.counting.ended(scene.last().pid + 1));
  scene.now += seconds(5);
  CHECK_FALSE(disk.begins());
  disk.counts(7);
  CHECK(disk.counting.result().kib == 7);
  scene.now += seconds(50) - Milliseconds(1);
  CHECK_FALSE(disk.begins());
  scene.now += Milliseconds(1);
  CHECK(disk.begins());
}

TEST_CASE("counting: after a long count there is none for ten times as long") {
  scene = {};
  Disk disk;
  CHECK(disk.begins());
  scene.now += seconds(20);
  disk.counts(7);
  scene.now += seconds(200) - Milliseconds(1);
  CHECK_FALSE(disk.begins());
  scene.now += Milliseconds(1);
  CHECK(disk.begins());
}

TEST_CASE("counting: where there is nothing no child is made, nor looked again at once") {
  scene = {};
  Disk disk;
  CHECK(disk.begins());
  disk.counts(7);
  scene.now += seconds(50);
  scene.has_files = false;
  CHECK_FALSE(disk.begins());
  CHECK(disk.counting.result().kib == 0);
  scene.has_files = true;
  scene.now += seconds(49);
  CHECK_FALSE(disk.begins());
  scene.now += seconds(1);
  scene.no_child = true;
  CHECK_FALSE(disk.begins());
  CHECK_FALSE(disk.counting.ended(0));
}

TEST_CASE("counting: one that hangs is killed, and the last result stands") {
  scene = {};
  Disk disk;
  CHECK(disk.begins());
  disk.counts(7);
  scene.now += seconds(50);
  CHECK(disk.begins());
  pass(disk.loop, seconds(30) - Milliseconds(1));
  CHECK(scene.taken() == Sent{});
  SUBCASE("after 30 s") {
    pass(disk.loop, Milliseconds(1));
    CHECK(scene.taken() == Sent{{scene.last().pid, SIGKILL}});
    scene.last().end();
    CHECK(disk.counting.ended(scene.last().pid));
    CHECK(disk.counting.result().kib == 7);
    CHECK_FALSE(disk.counting.result().complete);
  }
  SUBCASE("but not by its time when it is handed over, or has ended") {
    SUBCASE("handed over") {
      CHECK(disk.counting.hand_over() == scene.last().pid);
    }
    SUBCASE("ended") {
      disk.counts(8);
      CHECK(disk.counting.hand_over() == -1);
    }
    pass(disk.loop, seconds(60));
    CHECK(scene.taken() == Sent{});
  }
}
