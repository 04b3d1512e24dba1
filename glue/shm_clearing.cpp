#include "glue/shm_clearing.hpp"

#include "glue/events.hpp"
#include "glue/shm.hpp"

namespace glidepod::glue {

namespace {
// The pause after a try that has removed nothing.
constexpr Milliseconds k_pause = std::chrono::seconds(10);
}  // namespace

void ShmClearing::begin() {
  const auto owner = owner_of_any(k_shm);
  if (!owner) return empty_();
  say("event=clearing folder={} uid={}", k_shm, *owner);
  auto worker = start_remover({.uid = *owner, .gid = *owner, .groups = {}}, {k_shm});
  if (!worker) return timer_.set(k_pause, [this] { begin(); });
  worker_ = std::move(*worker);
}

bool ShmClearing::ended(pid_t pid) {
  if (pid != worker_.pid()) return false;
  const auto removed = worker_.ended<Cleaned>().value_or(Cleaned{}).removed;
  say("event=cleared folder={} removed={}", k_shm, removed);
  timer_.set(removed > 0 ? Milliseconds(0) : k_pause, [this] { begin(); });
  return true;
}

}  // namespace glidepod::glue
