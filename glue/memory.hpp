#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

// What a control group tells of its memory. Counters are those of the container's whole life.
struct MemoryState {
  std::uint64_t oom_kills = 0;
  std::uint64_t limit_reached = 0;  // times that its own limit stood in the way
  std::int64_t limit_kib = 0;       // 0: none, or unknown
};

// The number after a word in lines of "word number"; nothing where there is none.
std::optional<std::uint64_t> counter_in(std::string_view text, std::string_view word);
// A file of one number of bytes, in KiB; 0 for "max" and for what stands for it in version 1.
std::int64_t limit_kib_in(std::string_view text);
// Where the group of a process lies below its hierarchy's mount, from /proc/self/cgroup: of version 2
// (controller empty) or of the named controller. Nothing for a path that leads outside.
std::optional<std::string> group_in(std::string_view cgroup, std::string_view controller);

// The container's own control group, of version 1 or 2, as it is seen in the container.
class ControlGroup {
 public:
  // Where memory is not accounted for, or not to be seen, every reading is all zeros.
  explicit ControlGroup(const std::string& mounts = "/sys/fs/cgroup");
  MemoryState read() const;
  // What cannot be freed: anonymous and shared memory, but not page cache, of which every job that reads
  // files fills its container. Nor what the kernel has for it, a few percent.
  std::int64_t used_kib() const;

 private:
  // Kept open: they are read at the begin and the end of every job, the last one at every Beat.
  Fd events_, failures_, limit_, stat_;
  bool version_2_ = false;
};

struct MemoryUse {
  std::uint32_t oom_kills = 0;
  std::int64_t limit_kib = 0;
  std::int64_t peak_kib = 0;
};
// What happened between two readings. The peak is known only where the limit was reached for want of memory
// that could be freed: then it is the limit. What the kernel calls a peak holds page cache, which is no use.
MemoryUse use_between(const MemoryState& before, const MemoryState& after);

}  // namespace glidepod::glue
