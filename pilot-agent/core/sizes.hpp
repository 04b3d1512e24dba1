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
  bool idle = false;          // nobody's job is in it, or has it for certain
  std::int64_t used_kib = 0;  // of its memory, what cannot be freed; 0: not known
};

// Who is to have what. `shrink` first, and only when that is so, `grow`: then at no moment the containers
// have more than the pod, in whatever order each of both is done.
struct SizePlan {
  std::vector<kube::SizeChange> shrink, grow;
  bool empty() const { return shrink.empty() && grow.empty(); }
};

// What glue and a container's start need, and what a limit stands above the memory in use.
constexpr Amount k_idle_floor{100, std::int64_t{64} << 20};
constexpr std::int64_t k_memory_margin_kib = 16 << 10;

// The container's limits become its slot's, and its requests, as far as the pod has them. Containers that are
// not idle stay as they are. The idle ones share the requests that are left, so that the node keeps them for
// this pod, and have no higher limits than that, and no lower ones than the floor and their memory in use.
// room: what all payload containers together may have. Nothing if the limits do not fit.
std::optional<SizePlan> plan_sizes(const Size& room, const std::vector<Sizeable>& all,
                                   const std::string& container, const Amount& slot);

}  // namespace glidepod::agent
