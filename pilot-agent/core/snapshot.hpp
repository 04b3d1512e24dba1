#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pilot-agent/core/binds.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

class Answers;
class Containers;
class Health;
class Pulls;
class Queue;
class References;

// What the core knows, in a form for people: for the log, tests and `pilot-agent status`.
struct Snapshot {
  struct One {
    std::string name;
    State state = State::absent;
    std::string instance;  // the container's id, if a glue is connected and the id is known
    std::string image;     // by its name as written in a pod; empty: home, or not known
    std::string digest;    // of the image that runs, once the status has told it
    bool settled = true;
    std::string job, owner, slot;  // of the job that runs or ends here, or is about to come
    std::string how;               // how the job came by its container, and bound_in: in what time
    std::optional<std::chrono::microseconds> bound_in;
    std::string wanted;   // during a switch: the image that was asked for; empty: home
    std::string step;     // during a switch: leg and proof, as "target by goodbye"
    std::string trouble;  // during a switch: the last trouble with pulling or starting
  };
  std::vector<One> containers;
  struct Queued {
    std::string job, owner, slot, image;
    bool pulling = false;  // the job waits for its image, not for a container
    std::string trouble;   // with pulling the image
  };
  std::vector<Queued> waiting;  // the jobs in the queue
  struct Beside {
    std::string image, state, trouble;
  };
  std::vector<Beside> pulls;  // images that are wanted on the node
  struct Doubted {
    std::string named;  // the image as jobs name it
    Time until;         // no try before this time
  };
  std::vector<Doubted> doubts;  // images that failed on this node (doubts.hpp)
  Binds binds;
  int failures = 0;  // of the infrastructure, in a row
  bool given_up = false;
  std::string shortage;  // the last job that had too little memory or disk, and its numbers

  // One line for each container, with key=value words.
  std::string to_string() const;
};

Snapshot snapshot_of(const Containers& containers, const Queue& queue, const Pulls& pulls,
                     const References& references, const Health& health, const Answers& answers);

}  // namespace glidepod::agent
