#pragma once

#include "provisioner/demand/demand.hpp"

namespace glidepod::provisioner {

// What a test says, at once.
class FakeDemand : public DemandSource {
 public:
  Demand demand;
  void fetch(std::function<void(Demand)> done) override { done(demand); }
};

}  // namespace glidepod::provisioner
