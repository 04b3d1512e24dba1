#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::agent {

// What a folder that is an image may cost, and whose it must be.
struct FolderRules {
  std::uint64_t content = std::uint64_t{20} << 30;  // bytes of all files together
  std::uint64_t entries = 2'000'000;
  std::size_t depth = 100;
  std::size_t names = std::size_t{128}
                      << 20;  // bytes of memory for names: of the files of open folders, of hard links
  std::optional<uid_t> user;  // each entry's owner; none: whoever's
  bool times = false;         // false: HTCondor has made the files now, so their times say nothing
};

// Writes what is in a folder as a tar, for image-store. No link is followed and no other mount entered;
// devices and sockets are left out; all of it becomes root's, without setuid. The same content gives the same
// bytes. Blocks; for any thread. The Error is for the image's user, unless it has a code.
Result<void> write_folder_tar(const Fd& folder, const FolderRules& rules, const Fd& to);

}  // namespace glidepod::agent
