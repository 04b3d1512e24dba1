#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pilot-agent/core/binds.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What the core knows, for people: the log, tests, a status page.
struct Snapshot {
  struct One {
    std::string name;
    State state = State::absent;
    std::string instance;  // the container's id, if a glue is connected and it is known
    std::string image;     // as jobs ask for it; empty: none of theirs, or not known
    std::string digest;    // of what runs, once the status has told
    bool settled = true;
    std::string job, owner, slot;  // that it runs, drains, or is made ready for
    std::string how;               // the job came by its container, and in what time
    std::optional<std::chrono::microseconds> bound_in;
    std::string wanted;   // of a switch: the image it is for
    std::string step;     // of a switch: leg and proof, as "target by goodbye"
    std::string trouble;  // of a switch: last heard of pulling or starting
  };
  std::vector<One> containers;
  struct Queued {
    std::string job, owner, slot, image;
    bool pulling = false;  // the image is awaited, not a container
    std::string trouble;   // with it
  };
  std::vector<Queued> waiting;  // the jobs in the queue
  struct Beside {
    std::string image, state, trouble;
  };
  std::vector<Beside> pulls;  // images that are wanted on the node
  struct Doubted {
    std::string named;  // as jobs name it
    Time until;         // it is tried again
  };
  std::vector<Doubted> doubts;  // images that could not be had here (doubts.hpp)
  Binds binds;
  int failures = 0;  // of the infrastructure in a row
  bool given_up = false;
  std::string shortage;  // the last job that had too little memory or disk, and its numbers

  // One line a container, key=value.
  std::string to_string() const;
};

}  // namespace glidepod::agent
