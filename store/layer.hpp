#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "store/limits.hpp"

namespace glidepod::store {

// What is known of a layer once it is written.
struct Layer {
  std::string diff_id;       // the digest of its tar
  std::string architecture;  // empty: the file does not say
  bool runscript = false;    // there is /.singularity.d/runscript
  std::uint64_t entries = 0;
  std::uint64_t left_out = 0;  // devices, sockets and names that a layer cannot have
  std::uint64_t content = 0;   // bytes of files

  // As one line, and back. What comes back may have been written by anybody.
  std::string to_line() const;
  static Result<Layer> from_line(std::string_view line);
};

// Takes bytes; an Error ends the writing.
using Sink = std::function<Result<void>(std::string_view)>;

// The fact of an Error that is the image's fault, and so its user's; without it the fault is on this side.
struct BadImage {};

// Writes the file system of an image file as the tar of one OCI layer. The same file gives the same bytes.
Result<Layer> write_layer(const Fd& file, const Limits& limits, const Sink& sink);

}  // namespace glidepod::store
