#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/sizes.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// The resizes of the pod's payload containers, if the cluster serves them. In each resize one container gets
// its job's size, and the idle ones share what is left. Only one is under way at a time.
// pilot-agent/README.md has the steps.
class Resizes {
 public:
  Resizes(const Policy& policy, Containers& containers, Actions& actions)
      : policy_(policy), containers_(containers), actions_(actions) {}

  // The pod as it was when the agent started. earlier_until: until then a resize that an earlier agent has
  // asked for may still happen; nothing: no agent was before this one.
  void begin(const kube::Pod& pod, std::optional<Time> earlier_until);
  // Takes the sizes of a newly seen pod, before the core looks at the containers' statuses.
  void see(const kube::Pod& pod);

  enum class Fit : std::uint8_t {
    fits,       // or its size does not matter
    resize,     // it has to be resized first
    wait,       // until other resizes are settled
    too_small,  // and cannot be resized
  };
  Fit fit_of(const Container& container, const Request& request) const;
  // Whether the container has less memory than the slot. Then its job would be held for using memory that it
  // may use. The size that the pod was made with always counts as enough.
  bool too_small(const Container& container, const Request& request) const;

  // The step `size` of a container that switches, whose fit for the request that waits there is `resize`.
  void begin_step(Container& container, Time now);
  // Begins a resize for a container whose fit is `resize`: first the glues are asked for the memory in use.
  void start(const Container& container, const Amount& slot, Time now);
  bool under_way() const { return current_.has_value(); }

  // What a resize has come to. The container goes on with the size that it has.
  struct End {
    std::string container;
    std::string trouble = {};  // why it has not its job's size; empty: it has
    bool deaf = false;         // its glue does not answer
  };
  // Whether this was a glue's answer about its memory.
  bool take_used(const Container& container, const wire::Beat& beat);
  void glue_gone(const std::string& container);
  // Goes on once all glues have answered or are gone.
  std::optional<End> go_on(Time now);
  // The API's answers. Once the resize is taken, the pod is to be looked at by check().
  void taken(std::uint64_t attempt, const kube::Pod& pod);
  std::optional<End> refused(std::uint64_t attempt, const kube::Failure& failure, Time now);
  // Looks at the clock and at the sizes that the status shows; and then, once that end has had its effect, at
  // resizes that were left.
  std::optional<End> check(Time now);
  void check_left(Time now);
  // Leaves the resize of this container, if it is the one under way. If it was asked for and is not in force,
  // it may still happen for a while.
  void leave(const std::string& container, Time now);

  bool awaits_status() const { return (current_ && current_->answered) || settled_at_; }
  std::optional<Time> next_deadline() const;

 private:
  struct Current {
    std::string container;
    Amount slot;
    Time answers_by, until;
    // Before a limit is lowered, the agent asks the glues how much memory their containers use. questions:
    // the containers without an answer, by the question's number. used_kib: the answers, by container.
    std::map<std::uint64_t, std::string> questions = {};
    std::map<std::string, std::int64_t> used_kib = {};
    std::vector<kube::SizeChange> grow = {};    // to be asked for when `asked` is in force
    std::vector<kube::SizeChange> asked = {};   // what the API is asked for at present
    std::map<std::string, Amount> before = {};  // the limits in the spec before that
    std::uint64_t attempt = 0;
    bool answered = false;  // the API has taken it
    // An earlier resize may not be in force yet, so the status may show these sizes from before it. Only a
    // status of this generation of the pod counts.
    bool doubtful = false;
    std::int64_t generation = 0;
  };
  bool served() const { return !off_ && room_.has_value(); }
  void turn_off(const std::string& why);
  std::vector<Sizeable> sizeables() const;
  bool in_force(const kube::SizeChange& change) const;
  std::optional<End> ask_round(std::vector<kube::SizeChange> changes);
  End fail(std::string_view trouble, Time now);

  const Policy& policy_;
  Containers& containers_;
  Actions& actions_;
  std::optional<kube::Size> room_;  // the size of all payload containers together
  bool off_ = false;                // the API does not serve or not allow them
  std::optional<Current> current_;  // the one under way
  std::optional<Time> settled_at_;  // until then one that was asked for may still happen
  bool can_show_ = false;           // the status may show earlier that none is pending
  std::optional<kube::Pod::PendingResize> pending_;
  std::int64_t observed_generation_ = 0;
  std::string last_trouble_;  // the log has it once
};

}  // namespace glidepod::agent
