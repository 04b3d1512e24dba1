#include "glue/memory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::glue;

TEST_CASE("memory: counters and limits are read as the kernel writes them") {
  const char* events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n";
  CHECK(counter_in(events, "oom_kill") == 2);
  CHECK(counter_in(events, "oom") == 3);
  CHECK_FALSE(counter_in(events, "oom_").has_value());
  CHECK_FALSE(counter_in("oom_kill\noom_kill x\noom_kill -1\n", "oom_kill").has_value());
  CHECK(counter_in("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill") == 7);
  CHECK(limit_kib_in("52428800\n") == 51200);
  CHECK(limit_kib_in("max\n") == 0);
  CHECK(limit_kib_in("9223372036854771712\n") == 0);
  CHECK(limit_kib_in("") == 0);
  CHECK(limit_kib_in("-5\n") == 0);
}

TEST_CASE("memory: a process's group is found in either version, and never outside") {
  CHECK(group_in("0::/\n", "") == "");
  CHECK(group_in("0::/kubepods/pod1/c1\n", "") == "/kubepods/pod1/c1");
  CHECK(group_in("12:cpu,cpuacct:/a\n9:memory:/b c:d\n0::/x\n", "memory") == "/b c:d");
  CHECK(group_in("12:cpu,cpuacct:/a\n", "cpuacct") == "/a");
  CHECK_FALSE(group_in("0::/../../other\n", "").has_value());
  CHECK_FALSE(group_in("9:memory:relative\n", "memory").has_value());
  CHECK_FALSE(group_in("9:mem:/b\n", "memory").has_value());
  CHECK_FALSE(group_in("", "").has_value());
  CHECK_FALSE(group_in("no colons\n1:one\n", "one").has_value());
}

TEST_CASE("memory: what happened between two readings") {
  const MemoryState before{.oom_kills = 4, .limit_reached = 9, .limit_kib = 1000};
  CHECK(use_between(before, before).oom_kills == 0);
  CHECK(use_between(before, before).limit_kib == 1000);
  // Its own limit had no part in it: the node was out of memory, or the pod.
  const MemoryState elsewhere{.oom_kills = 5, .limit_reached = 9, .limit_kib = 1000};
  CHECK(use_between(before, elsewhere).oom_kills == 1);
  CHECK(use_between(before, elsewhere).peak_kib == 0);
  const MemoryState own{.oom_kills = 6, .limit_reached = 20, .limit_kib = 1000};
  CHECK(use_between(before, own).oom_kills == 2);
  CHECK(use_between(before, own).peak_kib == 1000);
  // A limit reached and nobody killed is page cache given back.
  const MemoryState cache{.oom_kills = 4, .limit_reached = 20, .limit_kib = 1000};
  CHECK(use_between(before, cache).oom_kills == 0);
  CHECK(use_between(before, cache).peak_kib == 0);
  CHECK(use_between(own, before).oom_kills == 0);
}

TEST_CASE("memory: a group of either version is read, and none is no error") {
  const TemporaryFolder folder;
  const std::string& mounts = folder.path;
  CHECK(ControlGroup(mounts).read().oom_kills == 0);
  ::mkdir((mounts + "/memory").c_str(), 0755);
  REQUIRE(replace_file(mounts + "/memory/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n", 0644).ok());
  REQUIRE(replace_file(mounts + "/memory/memory.failcnt", "5\n", 0644).ok());
  REQUIRE(replace_file(mounts + "/memory/memory.limit_in_bytes", "1048576\n", 0644).ok());
  auto state = ControlGroup(mounts).read();
  CHECK(state.oom_kills == 3);
  CHECK(state.limit_reached == 5);
  CHECK(state.limit_kib == 1024);
  CHECK(ControlGroup(mounts).used_kib() == 0);
  REQUIRE(replace_file(
              mounts + "/memory/memory.stat",
              "cache 9999\nrss 1024\nshmem 0\ntotal_cache 999999\ntotal_rss 4096\ntotal_shmem 2048\n", 0644)
              .ok());
  CHECK(ControlGroup(mounts).used_kib() == 6);
  REQUIRE(replace_file(mounts + "/memory.events", "oom 2\noom_kill 1\n", 0644).ok());
  REQUIRE(replace_file(mounts + "/memory.max", "max\n", 0644).ok());
  state = ControlGroup(mounts).read();
  CHECK(state.oom_kills == 1);
  CHECK(state.limit_reached == 2);
  CHECK(state.limit_kib == 0);
  CHECK(ControlGroup(mounts).used_kib() == 0);
  REQUIRE(replace_file(mounts + "/memory.stat", "anon 8192\nfile 999999\nkernel 5\nshmem 1024\n", 0644).ok());
  CHECK(ControlGroup(mounts).used_kib() == 9);
}
