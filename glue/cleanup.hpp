#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "glue/privileges.hpp"

namespace glidepod::glue {

// Where a job may leave files outside of its sandbox. The last two are shared by all containers of the pod.
inline const std::vector<std::string> k_shared_folders = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};

struct Cleaned {
  std::uint32_t removed = 0;  // files, folders and IPC objects
  bool complete = true;
};
// Removes what the user owns below the folders, and its System V IPC objects, with the user's own rights
// (root has no CAP_DAC_OVERRIDE here). The user must have no process left. Does not fork where there is
// nothing.
Cleaned clean_after(const User& user, const std::vector<std::string>& folders = k_shared_folders);

}  // namespace glidepod::glue
