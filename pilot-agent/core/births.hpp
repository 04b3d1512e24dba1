#pragma once

#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/switches.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Containers that the pod was made with a job's image in, so that the first jobs of a pilot find it there.
// One is born with the first Hello of its glue.
class Births {
 public:
  Births(const Policy& policy, Switches& switches, Pulls& pulls, Actions& actions)
      : policy_(policy), switches_(switches), pulls_(pulls), actions_(actions) {}

  // For a container of a pod that had no agent before this one. True: it has been born already.
  bool expect(Container& container, Time now);
  // The first Hello of a container that was expected. Its status may have come before.
  void born(Container& container, Time now);
  // True at the first trouble: no job waits for its image, and jobs may want the container, which is to go
  // home. This does not count as a failure of the pilot.
  bool miscarried(const Container& container);

 private:
  const Policy& policy_;
  Switches& switches_;
  Pulls& pulls_;
  Actions& actions_;
};

}  // namespace glidepod::agent
