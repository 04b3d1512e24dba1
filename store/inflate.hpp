#pragma once

#include <sqfs/compressor.h>

namespace glidepod::store {

// Reads blocks that gzip compressed, for libsquashfs: by libdeflate, in less than half of zlib's time.
// nullptr: there is no memory. sqfs_destroy() ends it.
sqfs_compressor_t* make_inflate();

}  // namespace glidepod::store
