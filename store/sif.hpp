#pragma once

#include <cstdint>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::store {

// Where in a file the root file system of an image is.
struct Root {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool folder = false;            // it is no squashfs but the tar of a folder (folder.hpp)
  std::string architecture = {};  // as Go and OCI call it ("amd64"); empty: the file does not say
};

// Finds the squashfs of an image file: that of a SIF's primary system partition, or a file that is a squashfs
// itself, as older Singularity wrote it, with or without a first line for its launcher. All that is in the
// file may be wrong; what is returned lies within size bytes. The Error is a sentence for the image's user.
Result<Root> find_root(const Fd& file, std::uint64_t size);

}  // namespace glidepod::store
