#include "glue/ipc.hpp"

#include <doctest/doctest.h>

using namespace glidepod::glue;

TEST_CASE("ipc: what a user has made is found in the kernel's tables, whomever it names as its owner") {
  const char* shm =
      "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      "
      "atime\n"
      "         0          3   600                  4096    10    10      0 29999 29999 29999 29999          "
      "0\n"
      "         0          4  1600                  4096    10    10      0     0     0     0     0          "
      "0\n"
      "         0          5   600                 29999    10    10      0  1000  1000 29999 29999          "
      "0\n"
      "         0          6   600                 29999    10    10      0 29999 29999  1000  1000          "
      "0\n"
      "         0          7  1600                 29999    10    10      1 29999 29999 29999 29999          "
      "0\n";
  CHECK(ipc_ids_of(shm, 29999) == std::vector<int>{3, 5});
  CHECK(ipc_ids_of(shm, 1000) == std::vector<int>{6});
  CHECK(ipc_ids_of(shm, 10).empty());
  const char* sem =
      "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"
      "         0          7   600          2 29999   100   100   100          0 1700000000\n";
  CHECK(ipc_ids_of(sem, 29999).empty());
  CHECK(ipc_ids_of(sem, 100) == std::vector<int>{7});
  CHECK(ipc_ids_of("", 1).empty());
  CHECK(ipc_ids_of("\n1", 1).empty());
  CHECK(ipc_ids_of("perms cuid\n1", 1).empty());
  CHECK(ipc_ids_of("key shmid perms cuid\n1 2 600\n", 600).empty());
  CHECK(ipc_ids_of("no such table\n1 2 3\n", 3).empty());
}
