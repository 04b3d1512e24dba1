#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "lib/base/result.hpp"

namespace glidepod::glue {

// /dev/shm is the pod's, which its containers share, or a container's own: a volume in memory that the pod's
// manifest mounts there. Both outlive the container.
inline const std::string k_shm = "/dev/shm";

// Called in the init container, which has the pod's /dev/shm. Writes into the folder which one that is.
Result<void> note_pod_shm(const std::string& folder);
// Whether this container has a /dev/shm of its own, by the note in the folder; false if there is no note.
bool has_own_shm(const std::string& folder);

// The owner, other than root, of something in the folder; nothing if root owns all of it. Symbolic links are
// not followed.
std::optional<uid_t> owner_of_any(const std::string& folder);

}  // namespace glidepod::glue
