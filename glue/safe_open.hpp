#pragma once

#include <fcntl.h>
#include <linux/openat2.h>

#include <cstdint>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

// openat2(2), close-on-exec, through no symbolic link on the way or at the end. at is a folder's descriptor
// or AT_FDCWD; resolve adds RESOLVE_ flags. Invalid with errno set where it fails (ELOOP: there was a link).
Fd open_without_links(int at, const char* path, int flags, std::uint64_t resolve = 0, unsigned mode = 0);

}  // namespace glidepod::glue
