#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace glidepod::provisioner {

struct ContainerMemory {
  std::int64_t used = 0;   // bytes that cannot be taken back, of all processes
  std::int64_t limit = 0;  // 0: none
};

// Of the container that this process is in, as its cgroup (version 2 or 1) has it; nothing where that is not
// told.
std::optional<ContainerMemory> container_memory(const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace glidepod::provisioner
