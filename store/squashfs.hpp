#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "store/limits.hpp"
#include "store/sif.hpp"

namespace glidepod::store {

// What one name of an image stands for.
struct Entry {
  enum class Kind : std::uint8_t { folder, file, link, fifo, device, socket };
  Kind kind = Kind::file;
  std::string path;     // without a "/" at its beginning
  std::string target;   // of a link
  std::string same_as;  // the path of an earlier entry that is the same file; empty: none
  std::uint32_t mode = 0;
  std::uint32_t user = 0, group = 0;
  std::uint32_t time = 0;  // of its last change, in seconds since 1970
  std::uint64_t size = 0;  // of a file
  bool apart = false;      // neither this nor a later entry is the same file as an earlier one
  std::map<std::string, std::string> attributes = {};
};

// Gets what is in an image, entry by entry, folders before what is in them. An Error ends the reading and is
// returned from it.
struct Visitor {
  virtual ~Visitor() = default;
  virtual Result<void> entry(const Entry& entry) = 0;
  // The bytes of the file that entry() was told last. There are exactly size of them.
  virtual Result<void> content(std::string_view bytes) = 0;
};

// Reads the squashfs in a file, in the order of names, and holds no more of it than one path's folders. What
// the file says may be hostile. Errors are sentences for the image's user.
Result<void> read_squashfs(const Fd& file, const Root& root, const Limits& limits, Visitor& visitor);

}  // namespace glidepod::store
