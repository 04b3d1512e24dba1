#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "store/limits.hpp"

namespace glidepod::store {

// What is known of an image's layers once they are written.
struct Layer {
  std::string diff_id;       // the digest of the last one's tar
  std::string architecture;  // empty: the file does not say
  bool runscript = false;    // there is /.singularity.d/runscript
  std::uint64_t entries = 0;
  std::uint64_t left_out = 0;  // devices, sockets and names that a layer cannot have
  std::uint64_t content = 0;   // bytes of files
  std::vector<std::string> below =
      {};  // of the layers before the last one, their tars' digests; not in the line

  // As one line, and back. What comes back may have been written by anybody.
  std::string to_line() const;
  static Result<Layer> from_line(std::string_view line);
};

// Where a layer ends before the last one.
struct LayerEnd {
  std::string diff_id;
  std::uint64_t at = 0;  // bytes of it and of those before it

  std::string to_line() const;
  static Result<LayerEnd> from_line(std::string_view line);
};

// Takes bytes; an Error ends the writing.
using Sink = std::function<Result<void>(std::string_view)>;
// Is told between two layers. What was written until then is one's, what comes next the other's.
using Between = std::function<Result<void>(const LayerEnd&)>;

// The fact of an Error that is the image's fault, and so its user's; without it the fault is on this side.
struct BadImage {};

// Writes the file system of an image file as OCI layers, tar after tar; without `between` as one. A runtime
// fetches a layer while it unpacks the one before. The same file gives the same bytes.
Result<Layer> write_layers(const Fd& file, const Limits& limits, const Sink& sink,
                           const Between& between = {});

}  // namespace glidepod::store
