#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace glidepod::glue {

// The ids in a table of /proc/sysvipc (shm, sem or msg) that the user owns or created.
std::vector<int> ipc_ids_of(std::string_view table, uid_t uid);

// Whether the user has any System V segment, semaphore set or queue.
bool has_ipc(uid_t uid);

// Removes them; to be called as the user. The number removed.
std::uint32_t remove_ipc(uid_t uid);

}  // namespace glidepod::glue
