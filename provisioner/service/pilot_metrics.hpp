#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "provisioner/service/cycle.hpp"

namespace glidepod::provisioner {

// What pilots did, for Prometheus. They count themselves, in the ads of their pods' own slots; here is added
// what each has more than the last time. So nothing between two looks is missed, but what a pilot did after
// its last ad is, as is all before this instance's first look.
class PilotMetrics {
 public:
  // What a cycle saw; nothing where it was blind.
  void saw(const Observation& seen);
  // Others may look from now on.
  void forget();

  // In Prometheus' text format.
  std::string text() const;

 private:
  BindCounts binds_;
  std::map<std::string_view, double> pod_seconds_;  // by state
  std::map<std::string, BindCounts> last_;          // by pod
  bool looked_ = false;
  Time last_look_;
};

}  // namespace glidepod::provisioner
