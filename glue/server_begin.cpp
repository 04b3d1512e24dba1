// What the job of an earlier glue has left in a /dev/shm of this container's own, which outlives the
// container: gone before the agent hears of this one, however long that takes. The others of the pod go on
// meanwhile.

#include "glue/events.hpp"
#include "glue/server.hpp"
#include "glue/shm.hpp"

namespace glidepod::glue {

namespace {
// The pause after a try that has removed nothing.
constexpr Milliseconds k_shm_pause = std::chrono::seconds(10);
}  // namespace

Result<void> Server::clear_own_shm() {
  const auto owner = options_.own_shm ? owner_of_any(k_shm) : std::nullopt;
  if (!owner) return link_.start();
  say("event=clearing folder={} uid={}", k_shm, *owner);
  auto worker = start_remover({.uid = *owner, .gid = *owner}, {k_shm});
  if (worker)
    shm_cleaner_ = std::move(*worker);
  else
    clear_own_shm_after(k_shm_pause);
  return {};
}

void Server::clear_own_shm_after(Milliseconds pause) {
  loop_.after(pause, [this] {
    if (auto next = clear_own_shm(); !next) {
      failure_ = next.error();
      loop_.stop();
    }
  });
}

bool Server::was_shm_cleaner(pid_t pid) {
  if (pid != shm_cleaner_.pid()) return false;
  const auto removed = shm_cleaner_.ended<Cleaned>().value_or(Cleaned{}).removed;
  say("event=cleared folder={} removed={}", k_shm, removed);
  clear_own_shm_after(removed > 0 ? Milliseconds(0) : k_shm_pause);
  return true;
}

}  // namespace glidepod::glue
