#pragma once

#include <string>

#include "lib/base/result.hpp"

namespace glidepod::glue {

// Makes directory/{bin,run,scratch} with their modes, and puts this program at directory/bin/glue. That file
// has its old or its new content at any time, and is read back to compare. Beside it goes the pilot image's
// apptainer, which may only be executed, and a note that says which /dev/shm is the pod's.
Result<void> install(const std::string& directory);

}  // namespace glidepod::glue
