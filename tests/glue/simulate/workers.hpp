#pragma once

#include <cstdint>
#include <utility>

#include "glue/worker.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue::simulate {

class World;
struct Process;

// glue's own children, which clean and count: what of them must hold.
class Workers {
 public:
  explicit Workers(World& world) : world_(world) {}

  void cleaner_begins(Process& cleaner, bool as_root, const User& user, Milliseconds limit);
  // One that empties a /dev/shm of the container's own begins, or cannot; and what it has done.
  void remover_begins(const User& user);
  void removed(std::uint32_t files);
  // The agent asks what a job has on disk, that has run freely since before.
  void asked(bool runs_freely);
  // Before there is a child.
  void count_begins();
  void nothing_to_count();
  void counted(const Counted& count);
  void count_ended();
  // A beat says so.
  void told(std::int64_t kib, bool complete);
  // What was counted is of no job any more.
  void forget();
  // After each of glue's turns.
  void check() const;

 private:
  using Count = std::pair<std::int64_t, bool>;
  void newest(Count count);

  World& world_;
  // What a beat says: what was counted last, and until glue can know of that, what was before.
  Count before_{0, true}, newest_{0, true};
  SteadyTime newest_at_{};
  bool counting_ = false, has_counted_ = false;  // for this job
  SteadyTime begun_{}, next_{}, remover_next_{};
  bool due_ = false;       // the agent has asked, and it is time
  int root_cleaners_ = 0;  // of this cleaning
};

}  // namespace glidepod::glue::simulate
