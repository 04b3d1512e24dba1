#pragma once

#include <map>
#include <string>
#include <vector>

#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// What each named place had when it was last seen: a place that does not answer keeps its pods. Pure.
class Sights {
 public:
  // Adds to the pods of the places that were seen now those of the others (by name: why they were not seen),
  // as they were, time standing still for them, and never to be removed. After outage_shift only those stay
  // that have an ad in the pool: the others are no longer waited for. Says how each place is seen.
  std::map<std::string, PlaceSupply> complete(std::vector<Pod>& pods, const std::vector<std::string>& places,
                                              const std::map<std::string, std::string>& unseen,
                                              const std::vector<Slot>& slots, Seconds outage_shift, Time now);
  // A pod was made since, or it is not known whether it was: should its place not be seen again, it counts.
  void made(const std::string& pod, const Group& group, std::string_view image, Time now);

 private:
  struct Sight {
    Time at;
    std::vector<Pod> pods;
    bool seen = false;  // else at is when somebody first looked for it
  };
  std::map<std::string, Sight> last_;
};

}  // namespace glidepod::provisioner
