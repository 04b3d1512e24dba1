#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod {

// The one place where root opens, makes and changes things in trees that a job or an image can bend: an
// image, /tmp, /dev/shm, sandboxes. A tree is a held folder; nothing here ever leads out of it.

// What a path, its last part included, may lead through on the way from a held folder.
enum class Through : std::uint8_t {
  nothing,  // neither a symbolic link nor another mount: where jobs write
  links,    // links that stay in the folder, an absolute one beginning there, but no other mount: an image's
  mounts,   // other mounts, but no link: from / to the folder that a mount is
};

// openat2(2) beneath a held folder, or by hand, part by part, where a container runtime's filter does not
// know that call. ".." stays in the folder. Always close-on-exec; invalid with errno set where it fails:
// ELOOP (there was a link), EXDEV (another mount).
Fd open_beneath(int folder, const std::string& path, int flags, Through through = Through::nothing,
                unsigned mode = 0);
inline Fd open_beneath(const Fd& folder, const std::string& path, int flags,
                       Through through = Through::nothing, unsigned mode = 0) {
  return open_beneath(folder.get(), path, flags, through, mode);
}
// As open_beneath(), but always by hand; for tests.
Fd walk_beneath(int folder, const std::string& path, int flags, Through through, unsigned mode = 0);

// A folder by its absolute path, through no link.
Fd open_tree(const std::string& path, int flags = 0);

// These are for one entry of a held folder. name is one part of a path: it is followed nowhere.

// Makes a folder of exactly this mode, whatever the umask. An Error of EEXIST: there is something already.
Result<Fd> make_folder(const Fd& folder, const std::string& name, mode_t mode);
Result<void> make_link(const Fd& folder, const std::string& name, const std::string& target);
// The target of a symbolic link; empty if there is no link.
std::string link_at(const Fd& folder, const std::string& name);
// flags: AT_REMOVEDIR for a folder, which must be empty.
Result<void> remove_entry(const Fd& folder, const std::string& name, int flags = 0);

// These are for the very object that is held, also where it is held by O_PATH and closed to this process.
Result<Fd> reopen(const Fd& held, int flags);
Result<void> set_mode(const Fd& held, mode_t mode);
Result<void> set_owner(const Fd& held, uid_t user, gid_t group);

}  // namespace glidepod
