#pragma once

#include <string>

#include "lib/base/result.hpp"

namespace glidepod::glue {

// Makes directory/{bin,run,scratch} with their modes and puts this program at directory/bin/glue, where it
// has either its old or its new content at any time; reads it back to compare. Puts the pilot image's
// apptainer beside it, execute-only, and which /dev/shm is the pod's.
Result<void> install(const std::string& directory);

}  // namespace glidepod::glue
