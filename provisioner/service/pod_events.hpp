#pragma once

#include <map>
#include <string>
#include <vector>

#include "provisioner/service/cycle.hpp"
#include "provisioner/service/owners.hpp"

namespace glidepod::provisioner {

// What an admin looks for on a pilot's pod, as its slots' ads tell it: `kubectl describe pod`.
//
//   Bound       Normal   a job came by a payload container: its id, owner, container, image, digest, how
//   BindWaits   Warning  a job waits for its image for longer than k_patience, and what it waits for
//   BindFailed  Warning  jobs came by none, and by whose fault
//   OutOfResources Warning  a job was put on hold for the memory or disk that it used: its numbers
//   Draining    Normal   somebody has asked for the pod's end: the jobs that are vacated
//   GivenUp     Warning  the pilot takes no more jobs, and why
//
// Of one reason a pod has one in k_pause, and a look has at most k_most, warnings first: a pool of any size
// makes few of them. What stood there at the first look, another instance may have told.
class PodEvents {
 public:
  static constexpr Seconds k_patience{30}, k_pause{600};
  static constexpr std::size_t k_most = 20;

  std::vector<PodEvent> saw(const Observation& seen, const OwnerNaming& naming = {});

 private:
  struct Memory {
    // By slot: the last job that came by a container.
    std::vector<std::pair<SharedText, SharedText>> jobs;
    Rare<BindCounts> binds;
    SharedText trouble, held;
    bool leaving = false;
    std::map<std::string, Time> told;  // by reason
  };
  void look_at_job(Memory& memory, const Slot& slot, const OwnerNaming& naming, Time now);
  void look_at_end(Memory& memory, const Pod& pod, const std::string& jobs, Time now);
  void look_at_pilot(Memory& memory, const Slot& slot, Time now);
  void tell(Memory& memory, PodEvent event, Time now);

  std::map<std::string, Memory> pods_;
  std::vector<PodEvent> warnings_, others_;
  bool looked_ = false;
};

}  // namespace glidepod::provisioner
