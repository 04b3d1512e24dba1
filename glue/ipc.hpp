#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace glidepod::glue {

// A System V IPC object belongs to the user who has made it. The owner that it names does not count, since an
// owner can name anybody.

// The ids of the objects that the user has made, from a table of /proc/sysvipc (shm, sem or msg). A segment
// that is removed already, but to which a process is still attached, is not among them.
std::vector<int> ipc_ids_of(std::string_view table, uid_t creator);

// Whether there is a System V segment, semaphore set or queue that the user has made.
bool has_ipc(uid_t creator);

// Removes these objects, and returns their number. To be called as the user: the kernel lets the maker remove
// them.
std::uint32_t remove_ipc(uid_t creator);

}  // namespace glidepod::glue
