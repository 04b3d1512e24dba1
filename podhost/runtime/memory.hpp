#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace glidepod::podhost {

// The bytes of memory of a process's control group, of version 2, that cannot be freed, so without page
// cache; 0 where it cannot be read. Version 1 needs no such question: there a limit below it is refused,
// where version 2 kills.
std::int64_t memory_in_use(pid_t process, const std::string& proc = "/proc",
                           const std::string& mount = "/sys/fs/cgroup");

// Whether a limit of memory comes with one of memory and swap together, which it must not exceed: version 1,
// where the kernel accounts for swap.
bool swap_is_limited(const std::string& mount = "/sys/fs/cgroup");

}  // namespace glidepod::podhost
