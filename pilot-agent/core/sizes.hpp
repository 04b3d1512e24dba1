#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/pod.hpp"

namespace glidepod::agent {

using kube::Amount;
using kube::Size;

// One payload container, as the pod's spec has it.
struct Sizeable {
  std::string name;
  Size now;
  bool idle = false;          // no job is in it or certain to get it
  std::int64_t used_kib = 0;  // its memory that cannot be freed; 0: not known
};

// The new sizes. `shrink` comes first, and `grow` only when all of `shrink` is in force. So the containers
// together never have more than the pod, in whatever order the node does the changes of each.
struct SizePlan {
  std::vector<kube::SizeChange> shrink, grow;
  bool empty() const { return shrink.empty() && grow.empty(); }
};

// The CPUs and memory that glue and a container's start need; and how far a limit stays above the memory in
// use.
constexpr Amount k_idle_floor{100, std::int64_t{64} << 20};
constexpr std::int64_t k_memory_margin_kib = 16 << 10;

// The plan to give `container` the size of its job's slot. Its limits become those of the slot, and so do its
// requests, as far as the pod has them. Containers that are not idle stay as they are. The idle containers
// share the requests that are left, so that the node keeps these for the pod. Their limits are no higher than
// that, and no lower than the floor and their memory in use. room: what all payload containers may have
// together. Nothing if the limits do not fit.
std::optional<SizePlan> plan_sizes(const Size& room, const std::vector<Sizeable>& all,
                                   const std::string& container, const Amount& slot);

}  // namespace glidepod::agent
