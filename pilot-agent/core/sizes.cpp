#include "pilot-agent/core/sizes.hpp"

#include <algorithm>

namespace glidepod::agent {
namespace {

Amount operator+(const Amount& a, const Amount& b) {
  return {a.cpu + b.cpu, a.memory + b.memory};
}
Amount lesser(const Amount& a, const Amount& b) {
  return {std::min(a.cpu, b.cpu), std::min(a.memory, b.memory)};
}
Amount greater(const Amount& a, const Amount& b) {
  return {std::max(a.cpu, b.cpu), std::max(a.memory, b.memory)};
}
bool within(const Amount& a, const Amount& b) {
  return a.cpu <= b.cpu && a.memory <= b.memory;
}
Amount left_of(const Amount& whole, const Amount& taken) {
  return {std::max<std::int64_t>(whole.cpu - taken.cpu, 0),
          std::max<std::int64_t>(whole.memory - taken.memory, 0)};
}
// 0 means no limit, so it counts as more than any limit.
std::int64_t lesser_limit(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? a + b : std::min(a, b);
}

}  // namespace

std::optional<SizePlan> plan_sizes(const Size& room, const std::vector<Sizeable>& all,
                                   const std::string& container, const Amount& slot) {
  Size taken;
  std::int64_t idle = 0;
  for (const Sizeable& one : all) {
    if (one.name == container) continue;
    if (one.idle) {
      ++idle;
      continue;
    }
    taken = {taken.request + one.now.request, taken.limit + one.now.limit};
  }
  const Size wanted{lesser(slot, left_of(room.request, taken.request)), slot};
  taken = {taken.request + wanted.request, taken.limit + wanted.limit};
  const Amount left = left_of(room.request, taken.request);
  const Amount share = idle > 0 ? Amount{left.cpu / idle, left.memory / idle} : Amount{};

  SizePlan plan;
  for (const Sizeable& one : all) {
    Size next = one.now;
    const std::int64_t in_use = one.used_kib > 0 ? (one.used_kib + k_memory_margin_kib) << 10 : 0;
    if (one.name == container) {
      next = wanted;
      const bool lowered = one.now.limit.memory == 0 || slot.memory < one.now.limit.memory;
      if (lowered && slot.memory < in_use) return std::nullopt;
    } else if (one.idle) {
      next.request = share;
      next.limit = greater(share, k_idle_floor);
      // A limit is not lowered below the memory in use.
      const std::int64_t least = one.now.limit.memory > 0 ? std::min(in_use, one.now.limit.memory) : in_use;
      next.limit.memory = std::max(next.limit.memory, least);
      taken.limit = taken.limit + next.limit;
    }
    const Size less{lesser(one.now.request, next.request),
                    {lesser_limit(one.now.limit.cpu, next.limit.cpu),
                     lesser_limit(one.now.limit.memory, next.limit.memory)}};
    if (less != one.now) plan.shrink.push_back({one.name, less});
    if (next != less) plan.grow.push_back({one.name, next});
  }
  if (!within(taken.limit, room.limit)) return std::nullopt;
  return plan;
}

}  // namespace glidepod::agent
