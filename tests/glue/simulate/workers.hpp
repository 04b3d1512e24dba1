#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/loop.hpp"

namespace glidepod::glue::simulate {

class World;
struct Process;

// glue's own children, which clean and count: what of them must hold.
class Workers {
 public:
  explicit Workers(World& world) : world_(world) {}

  void cleaner_begins(Process& cleaner, bool as_root, std::uint32_t uid, Milliseconds limit);
  // The agent asks what a job has on disk, that has run freely since before.
  void asked(bool runs_freely);
  // Before there is a child.
  void count_begins();
  void nothing_to_count();
  void counted(std::int64_t kib);
  void count_ended();
  // A beat says so.
  void told(std::int64_t kib);
  // What was counted is of no job any more.
  void forget();
  // After each of glue's turns.
  void check() const;

 private:
  World& world_;
  // What a beat may say: what was counted last, and until glue can know of that, what was before.
  std::set<std::int64_t> counts_ = {0};
  std::optional<std::pair<std::int64_t, SteadyTime>> newest_;
  SteadyTime begun_{}, next_{};
  bool due_ = false;       // the agent has asked, and it is time
  int root_cleaners_ = 0;  // of this cleaning
};

}  // namespace glidepod::glue::simulate
