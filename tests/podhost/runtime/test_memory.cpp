#include "podhost/runtime/memory.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

using namespace glidepod::podhost;

namespace {
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("podhost-memory-" + glidepod::random_hex(6))) {}
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  std::filesystem::path path;
};
}  // namespace

TEST_CASE("memory: what cannot be freed, of version 2, and elsewhere nothing") {
  const Folder folder;
  const auto in_use = [&folder] { return memory_in_use(7, folder.path / "proc", folder.path / "cgroup"); };
  CHECK(in_use() == 0);
  folder.write("proc/7/cgroup", "4:memory:/old\n");
  CHECK(in_use() == 0);
  folder.write("proc/7/cgroup", "4:cpu:/old\n0::/pod/c\n");
  CHECK(in_use() == 0);
  folder.write("cgroup/pod/c/memory.stat", "anon 4096\nfile 900000\nshmem 100\nanon_thp 5\n");
  CHECK(in_use() == 4196);
  CHECK_FALSE(swap_is_limited(folder.path / "cgroup"));
  folder.write("cgroup/memory/memory.memsw.limit_in_bytes", "1");
  CHECK(swap_is_limited(folder.path / "cgroup"));
}
