#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "provisioner/decide/step.hpp"
#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// What an operator has taken out of use (`provisioner drain`, `provisioner kill`), until it is given back
// (`provisioner undrain`): no pods are made for it, those that wait are removed.
struct Drained {
  enum class Kind : std::uint8_t { group, node, place };
  enum class Mode : std::uint8_t {
    drain,  // pods that run take no more jobs, and end after their last one
    kill,   // pods that run are removed, so that their jobs run elsewhere
  };
  Kind kind = Kind::group;
  std::string name;  // of a group its hash, of a node with its place in front (place.hpp)
  Mode mode = Mode::drain;
  std::string reason;
  Time since;
};
using DrainList = std::vector<Drained>;
std::string_view to_string(Drained::Kind kind);
std::string_view to_string(Drained::Mode mode);

// A pod that runs and that its pilot has to hear of, or that is removed with its jobs.
struct Draining {
  std::string pod, reason;
  Drained::Mode mode = Drained::Mode::drain;
};

// Null: none.
const Drained* drained(const DrainList& list, Drained::Kind kind, std::string_view name);
const Drained* drained_group(const DrainList& list, const Group& group);
// What is told of a decision where the entry stands in its way.
Step step_of(const Drained& entry, Time now);
std::vector<std::string> drained_nodes(const DrainList& list);

// The entry of each pod in turn; null: none. Of several the one that kills.
std::vector<const Drained*> entries_of(const std::vector<Pod>& pods, const DrainList& list);
// Notes in each pod that is concerned why it is (Pod::drained).
void mark_drained(std::vector<Pod>& pods, const DrainList& list);
// What there is to do about those that are not waiting, by removals(): some of it at a time. A place that is
// not seen is left alone.
std::vector<Draining> drainings(const std::vector<Pod>& pods,
                                const std::map<std::string, PlaceSupply>& places, const DrainList& list);

}  // namespace glidepod::provisioner
