#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

// Whether an image has no file at all. From 2.1 on containerd starts whatever a registry has, also artifacts
// that are no images, such as charts and SIFs: their root folder is empty but for what the runtime makes for
// its mounts. root: the image's root folder, open for reading. mounts: the mount points, as paths from there
// ("/proc"). False where a folder cannot be read.
bool has_no_file(const Fd& root, const std::vector<std::string>& mounts);

// The mount points in the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
std::vector<std::string> mount_points(std::string_view mountinfo);

// The same of this process's own root folder. False where it cannot be found out.
bool image_has_no_file();

}  // namespace glidepod::glue
