#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "lib/base/result.hpp"

namespace glidepod::glue {

// /dev/shm is the pod's, which its containers share, or a container's own: a volume in memory, mounted there
// by the pod's manifest. Both outlive the container.
inline const std::string k_shm = "/dev/shm";

// Called by the init container, which has the pod's /dev/shm: writes into the folder which one that is.
Result<void> note_pod_shm(const std::string& folder);
// Whether this container has one of its own, by what was noted in the folder; false where nothing was noted.
bool has_own_shm(const std::string& folder);

// Whose something in the folder is, root aside; nothing where all is root's. No symbolic link is followed.
std::optional<uid_t> owner_of_any(const std::string& folder);

}  // namespace glidepod::glue
