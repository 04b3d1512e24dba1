#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "provisioner/service/api_counts.hpp"
#include "provisioner/service/cycle.hpp"
#include "provisioner/service/pilot_metrics.hpp"

namespace glidepod::provisioner {

// What Prometheus is told. Counters grow as long as the process lives, all else is of the last cycle.
class Metrics {
 public:
  ApiCounts api;
  PilotMetrics pilots;
  std::optional<Time> token_ends;  // the first of the pool's tokens; none: all of them last

  void leads(bool leads) {
    if (leads && !leads_) ++took_lead_;
    leads_ = leads;
  }
  void decided(const Observation& seen, const Plan& plan) {
    begin_cycle();
    prepare(seen, plan);
    show(plan);
  }
  // The same in three steps, of which the second takes long and may run in another thread.
  void begin_cycle() {
    if (std::exchange(forget_pilots_, false)) pilots.forget();
  }
  void prepare(const Observation& seen, const Plan& plan);
  void show(const Plan& plan);
  void applied(const Plan& plan, const Applied& applied, Time ended, double seconds);
  void settings_read(bool good) { ++(good ? settings_good_ : settings_bad_); }
  // Those of cycles are there from the first one on; only a leader has them.
  void forget_cycle() {
    cycle_.clear();
    forget_pilots_ = true;
  }
  void status_written(bool good) { ++(good ? status_good_ : status_bad_); }

  // In Prometheus' text format.
  std::string text() const;

 private:
  bool leads_ = false;
  std::string cycle_;  // what the last cycle saw and decided, as text
  std::string pilots_text_ = pilots.text();
  std::string next_cycle_, next_pilots_text_;  // prepared, not shown yet
  bool forget_pilots_ = false;
  std::uint64_t took_lead_ = 0, status_good_ = 0, status_bad_ = 0;
  std::uint64_t cycles_ = 0, blind_cycles_ = 0, created_ = 0, removed_ = 0, not_created_ = 0,
                not_removed_ = 0;
  std::uint64_t settings_good_ = 0, settings_bad_ = 0;
  std::array<std::uint64_t, 7> decisions_{};  // by verdict
  Time last_cycle_;
  Histogram cycle_duration_;
};

}  // namespace glidepod::provisioner
