#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod {

// The only place where root opens, makes and changes things in trees that a job or an image controls: an
// image's file system, /tmp, /dev/shm, sandboxes. A tree is a held folder, which is a folder by its
// descriptor. Nothing here ever leads out of it.

// What a path may lead through on the way from a held folder, its last part included.
enum class Through : std::uint8_t {
  nothing,  // neither a symbolic link nor another mount: where jobs write
  links,    // links but no other mount, for an image. No link leads out: an absolute one begins at the folder
  mounts,   // other mounts but no link, for the way from / to a folder that is a mount
};

// Opens a path beneath a held folder by openat2(2). If a container runtime's filter does not know that call,
// it opens the path by hand, part by part. ".." stays in the folder. The result is always close-on-exec. On
// failure it is invalid and errno is set: ELOOP for a link, EXDEV for another mount.
Fd open_beneath(int folder, const std::string& path, int flags, Through through = Through::nothing,
                unsigned mode = 0);
inline Fd open_beneath(const Fd& folder, const std::string& path, int flags,
                       Through through = Through::nothing, unsigned mode = 0) {
  return open_beneath(folder.get(), path, flags, through, mode);
}
// Like open_beneath(), but always by hand; for tests.
Fd walk_beneath(int folder, const std::string& path, int flags, Through through, unsigned mode = 0);

// Opens a folder by its absolute path, through no link.
Fd open_tree(const std::string& path, int flags = 0);

// The next functions are for one entry of a held folder. name is one part of a path. Links are not followed.

// Makes a folder with exactly this mode, whatever the umask is. The Error is EEXIST if the name exists
// already.
Result<Fd> make_folder(const Fd& folder, const std::string& name, mode_t mode);
Result<void> make_link(const Fd& folder, const std::string& name, const std::string& target);
// The target of a symbolic link; empty if there is no link.
std::string link_at(const Fd& folder, const std::string& name);
// flags: AT_REMOVEDIR for a folder, which must be empty.
Result<void> remove_entry(const Fd& folder, const std::string& name, int flags = 0);

// The next functions are for the held object itself. They also work if it is held by O_PATH and this process
// may not open it by its name.
Result<Fd> reopen(const Fd& held, int flags);
Result<void> set_mode(const Fd& held, mode_t mode);
Result<void> set_owner(const Fd& held, uid_t user, gid_t group);

}  // namespace glidepod
