#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace glidepod::glue {

// System V IPC objects are a user's who has made them. Whom they name as their owner says nothing: their
// owner can name anybody.

// The ids in a table of /proc/sysvipc (shm, sem or msg) of what the user has made. A segment that is removed
// already, and to which somebody is still attached, is not among them.
std::vector<int> ipc_ids_of(std::string_view table, uid_t creator);

// Whether there is any System V segment, semaphore set or queue that the user has made.
bool has_ipc(uid_t creator);

// Removes them; to be called as the user, which the kernel lets whoever has made them. The number removed.
std::uint32_t remove_ipc(uid_t creator);

}  // namespace glidepod::glue
