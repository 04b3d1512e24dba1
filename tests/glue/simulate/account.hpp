#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "lib/base/loop.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue::simulate {

class World;

// What a job has used, and when it began and ended: what glue says of that must be so. A reading of memory is
// a number of its own, by which it is known again.
class Account {
 public:
  explicit Account(World& world) : world_(world) {}

  void begins();
  void starts();
  void forked();
  void main_ended();
  // glue reads the container's memory: for a job's account, and for a beat.
  std::uint64_t memory_read();
  std::int64_t memory_used() { return ++used_; }
  // A process of glue's that is none of its workers.
  void reaped(const rusage& usage);
  void reaped_all(bool all) { more_to_reap_ = !all; }
  void cleaning_begins() { removed_ = 0; }
  void removed(std::uint32_t files) { removed_ += files; }
  // It has looked at what else there is of the job, or has that removed.
  void looks_on() { looked_on_ = true; }
  void beat_asked() { used_before_ = used_; }

  void check_exited(const wire::Exited& exited);
  void check_ended(const wire::JobEnded& ended, bool exited_told) const;
  void check_beat(const wire::Beat& beat) const;

 private:
  World& world_;
  std::int64_t user_ = 0, system_ = 0, max_rss_ = 0;
  std::uint32_t removed_ = 0;
  SteadyTime starts_at_{}, forked_at_{}, main_ended_at_{};
  std::uint64_t reading_ = 0, before_ = 0;
  SteadyTime read_at_{};
  std::int64_t rss_when_read_ = 0;
  std::int64_t used_ = 0, used_before_ = 0;
  std::int64_t ended_ns_ = 0;
  std::uint64_t exited_in_ = 0;  // which of glue's writes had Exited
  bool looked_on_ = false, more_to_reap_ = false;
};

}  // namespace glidepod::glue::simulate
