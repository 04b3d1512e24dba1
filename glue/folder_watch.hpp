#pragma once

#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::glue {

// Makes a descriptor that is readable when something new appears in the folder. The Error is the system's.
Result<Fd> watch_folder(const std::string& path);
// Reads what the watch has told, so that it is no longer readable.
void drain_folder_watch(const Fd& watch);

}  // namespace glidepod::glue
