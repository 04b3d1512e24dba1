#pragma once

#include <cstdint>
#include <string>

#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/health.hpp"
#include "pilot-agent/core/proof.hpp"
#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/transitions.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// How a payload container gets another image, and how it is known that it has it. A container that switches
// has the facts in its state Switching. Each event is told here; what it has come to is returned, and the
// core makes something of it.
class Switches {
 public:
  Switches(const Policy& policy, References& references, Pulls& pulls, Health& health, Actions& actions)
      : policy_(policy), references_(references), pulls_(pulls), health_(health), actions_(actions) {}

  // The pod is known. credentials: whether it has any for registries.
  void begin(Credentials credentials) {
    known_ = true;
    credentials_ = credentials;
  }

  // Whether the test switch is due that a pilot makes before its first job: if the agent may not switch
  // images, or the kubelet does not, no job suffers from that.
  bool owes_test() const { return policy_.first == Policy::First::prove && !health_.proven() && known_; }
  // The container for it, which is to go home now; null: none, or not now.
  Container* for_test(Containers& containers, Time now);

  struct Outcome {
    enum class Kind : std::uint8_t {
      under_way,  // nothing is decided yet, or another step has begun
      done,       // the container runs what this step asked for
      failed,     // it does not, and gets the state `next`
      stale,      // it has to be started anew, and nobody but the agent will end it
    };
    Kind kind = Kind::under_way;
    wire::Fault fault = wire::Fault::infrastructure;
    std::string message = {};
    State next = State::broken;
  };
  // Patches the container's image: the next step to the image that was asked for.
  void next_step(Container& container, Time now);
  // The API's answers. After a stale one, and what was done about it, go_on() has the rest.
  Outcome patched(Container& container, const kube::Pod& pod, Time now);
  Outcome not_patched(Container& container, const kube::Failure& failure, Time now);
  Outcome go_on(Container& container, Time now);
  // A glue has connected; and is gone, of which the container's step is not `size`.
  Outcome hello(Container& container, Time now);
  Outcome glue_gone(Container& container, EventKind event, Time now);
  // Looks at the status, and at the clock.
  Outcome judge(Container& container, Time now);
  Outcome check(Container& container, Time now);
  // When check() has to be called at the latest.
  static Time next_deadline(const Container& container);
  // After `done`: true if the container has the image that was asked for; false if another step has begun.
  bool arrived(Container& container, Time now);

  // From now on the status is awaited that tells the digest of the image that runs.
  void await_digest(Container& container, Time now) const;
  // Compares the status of a container with what has been proven of it already, and learns from it. What is
  // doubtful is made anew before its next use.
  Check look_at(Container& container, Time now);
  // The same status may tell of the container before this one, if nothing had told of it.
  void learn_earlier(Container& container);

 private:
  void leave_id(Container& container, const std::string& why, Time now);
  void learn(const Image& image, const std::string& admitted, const kube::ContainerStatus& status);
  bool shows_instance(const Container& container, const kube::ContainerStatus& status, Time now) const;
  bool shows_told(const Container& container, const kube::ContainerStatus& status) const;

  const Policy& policy_;
  References& references_;
  Pulls& pulls_;
  Health& health_;
  Actions& actions_;
  bool known_ = false;
  Credentials credentials_ = Credentials::none;
};

}  // namespace glidepod::agent
