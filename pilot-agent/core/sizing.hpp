#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pilot-agent/core/sizes.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// A resize under way: one container gets its job's size, and the idle ones share what is left.
struct Sizing {
  std::string container;
  Amount slot;
  Time answers_by, until;
  // Before a limit is lowered, the agent asks the glues how much memory their containers use. questions: the
  // containers without an answer, by the question's number. used_kib: the answers, by container.
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

// The resizes of the pod's containers.
struct Resizes {
  std::optional<kube::Size> room;  // the size of all payload containers together
  bool off = false;                // the API does not serve or not allow them
  std::optional<Sizing> current;   // the one under way
  std::optional<Time> settled_at;  // until then one that was asked for may still happen
  bool can_show = false;           // the status may show earlier that none is pending
  std::optional<kube::Pod::PendingResize> pending;
  std::int64_t observed_generation = 0;
  std::string trouble;  // the last one; the log has it once

  bool served() const { return !off && room.has_value(); }
  bool awaits_status() const { return (current && current->answered) || settled_at; }
  std::optional<Time> next_deadline() const {
    if (!current) return settled_at;
    const Time due = current->attempt == 0 ? current->answers_by : current->until;
    return settled_at ? std::min(due, *settled_at) : due;
  }
  // Leaves the one under way. If it was asked for and is not in force, it may still happen until then.
  void leave(Time until) {
    const Sizing left = *std::exchange(current, std::nullopt);
    if (left.attempt == 0 || left.asked.empty()) return;
    settled_at = until;
    can_show = left.answered && !left.doubtful;
  }
};

}  // namespace glidepod::agent
