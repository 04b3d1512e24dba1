#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

// What a control group tells of its memory. The counters are for the container's whole life.
struct MemoryState {
  std::uint64_t oom_kills = 0;
  std::uint64_t limit_reached = 0;  // how often its own limit was reached
  std::int64_t limit_kib = 0;       // 0: none, or unknown
};

// The number after a word in lines of "word number"; nothing if there is no such line.
std::optional<std::uint64_t> counter_in(std::string_view text, std::string_view word);
// A limit in KiB, from a file with one number of bytes; 0 for "max", and for the number that means it in
// version 1.
std::int64_t limit_kib_in(std::string_view text);
// The path of a process's group below the mount of its hierarchy, from /proc/self/cgroup. An empty controller
// means version 2; else the named controller of version 1 is meant. Nothing for a path that leads outside.
std::optional<std::string> group_in(std::string_view cgroup, std::string_view controller);

// The container's own control group, version 1 or 2, as the container sees it.
class ControlGroup {
 public:
  // If memory is not accounted for, or the group cannot be seen, every reading is all zeros.
  explicit ControlGroup(const std::string& mounts = "/sys/fs/cgroup");
  MemoryState read() const;
  // The memory that cannot be freed: anonymous and shared memory. Page cache does not count, since every job
  // that reads files fills its container with it. The kernel's own memory for the container, a few percent,
  // does not count either.
  std::int64_t used_kib() const;

 private:
  // These stay open: they are read at the beginning and the end of every job, and stat_ at every Beat.
  Fd events_, failures_, limit_, stat_;
  bool version_2_ = false;
};

struct MemoryUse {
  std::uint32_t oom_kills = 0;
  std::int64_t limit_kib = 0;
  std::int64_t peak_kib = 0;
};
// What happened between two readings. The peak is known only if the limit was reached and no memory could be
// freed; then the peak is the limit. The kernel's own peak is of no use, since it includes page cache.
MemoryUse use_between(const MemoryState& before, const MemoryState& after);

}  // namespace glidepod::glue
