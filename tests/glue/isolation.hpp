#pragma once

#include <string>

namespace glidepod::glue::testing {

// A small file system as a payload container has it, in namespaces of this process alone: /usr from the
// machine, read-only; /proc; its own /dev, /dev/shm, /dev/mqueue; etc/passwd with root only; no /tmp;
// /glidepod with bin/glue; /job, the test program for jobs. Empty, or why it cannot be made.
std::string enter_isolation();

// The job's user in all tests: an id nobody has.
constexpr unsigned k_user = 29999;
constexpr unsigned k_tracking_group = 30001;
// A sandbox of the job's, below the shared scratch.
constexpr const char* k_sandbox = "/glidepod/scratch/dir_1";

}  // namespace glidepod::glue::testing
