#pragma once

#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "podhost/runtime/container_config.hpp"
#include "podhost/spec/environment.hpp"
#include "podhost/store/pod_files.hpp"

namespace glidepod::podhost {

// Makes the pod's volumes on the host; what already exists is kept.
Result<void> prepare_volumes(const PodFiles& files, const PodSpec& pod, const PodFacts& facts);

// Unmounts and removes the pod's volumes and what was made for its containers, but not its logs.
Result<void> remove_volumes(const PodFiles& files, const std::string& uid);

// The host side of a container's mounts. A subPath is looked up inside its volume, whatever links the pod has
// put there, created if missing, and pinned by a bind mount of its own, so that it cannot be exchanged
// afterwards.
Result<std::vector<ResolvedMount>> resolve_mounts(const PodFiles& files, const PodSpec& pod,
                                                  const ContainerSpec& container);

// The file or folder `path` names inside the folder `root`, as if root were /; missing folders are made.
Result<Fd> open_inside(const std::string& root, const std::string& path);

}  // namespace glidepod::podhost
