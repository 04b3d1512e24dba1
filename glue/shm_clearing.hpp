#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include "glue/timer.hpp"
#include "glue/worker.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Empties a /dev/shm of this container's own, which outlives the container: removes what a job of an earlier
// glue has left there, whoever's it is and however long that takes. The others of the pod go on meanwhile.
class ShmClearing {
 public:
  // empty: called once nobody but root owns anything there.
  ShmClearing(Loop& loop, std::function<void()> empty) : timer_(loop), empty_(std::move(empty)) {}

  // Looks, and begins a child if there is something.
  void begin();
  // To be called when a child of this process was reaped. True if it was this one.
  bool ended(pid_t pid);

 private:
  Timer timer_;
  std::function<void()> empty_;
  Worker worker_;
};

}  // namespace glidepod::glue
