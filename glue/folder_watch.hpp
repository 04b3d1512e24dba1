#pragma once

#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::glue {

// Readable when something new appears in the folder. The error is the system's.
Result<Fd> watch_folder(const std::string& path);
// Takes what it has told.
void drain_folder_watch(const Fd& watch);

}  // namespace glidepod::glue
